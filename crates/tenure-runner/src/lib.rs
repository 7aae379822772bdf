//! Executing work under a lease.
