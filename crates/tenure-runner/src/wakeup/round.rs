//! Runs one round over all projects with a deadline: a project that does not answer does not delay the others.

use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Inspecting is bound by the processor, so a few threads suffice; pinging and starting is mostly waiting.
const WORKERS: usize = 8;

/// Calls `work` for each job and returns the answers in order. A job that is not finished by the deadline has none;
/// its thread is abandoned and ends with the process.
pub fn for_each<J, A>(
    jobs: Vec<J>,
    deadline: Instant,
    work: impl Fn(J) -> A + Send + Sync + 'static,
) -> Vec<Option<A>>
where
    J: Send + 'static,
    A: Send + 'static,
{
    let mut answers: Vec<Option<A>> = jobs.iter().map(|_| None).collect();
    let workers = WORKERS.min(jobs.len());
    let queue: Arc<Mutex<VecDeque<(usize, J)>>> =
        Arc::new(Mutex::new(jobs.into_iter().enumerate().collect()));
    let work = Arc::new(work);
    let (sender, receiver) = channel();
    for _ in 0..workers {
        let (queue, work, sender) = (Arc::clone(&queue), Arc::clone(&work), sender.clone());
        let worker = move || {
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some((index, job)) = next else { return };
                if Instant::now() >= deadline || sender.send((index, work(job))).is_err() {
                    return;
                }
            }
        };
        // Fewer threads only take longer.
        let _ = std::thread::Builder::new().name("wake-up".into()).spawn(worker);
    }
    drop(sender);
    loop {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((index, answer)) => {
                if let Some(slot) = answers.get_mut(index) {
                    *slot = Some(answer);
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return answers,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_jobs() {
        let deadline = Instant::now() + Duration::from_mins(1);
        let answers = for_each((0..100).collect(), deadline, |n: u64| {
            std::thread::sleep(Duration::from_millis(n % 7));
            n * 2
        });
        assert_eq!(answers, (0..100).map(|n| Some(n * 2)).collect::<Vec<_>>());
        assert!(for_each(Vec::<u64>::new(), deadline, |n| n).is_empty());
    }

    #[test]
    fn a_job_that_hangs_is_abandoned_and_the_others_are_finished() {
        let answers = for_each(vec![1, 2, 3], Instant::now() + Duration::from_secs(2), |n| {
            if n == 2 {
                std::thread::sleep(Duration::from_hours(1));
            }
            n
        });
        assert_eq!(answers, [Some(1), None, Some(3)]);
    }
}
