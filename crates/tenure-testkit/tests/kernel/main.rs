//! The kernel as a whole: explored by a model checker, compared with a naive model, and under a jumping clock.

mod model;
