//! One round over all projects, with a hard end: a project that does not answer keeps nobody else waiting.

use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Looking keeps a processor busy, and more threads than a few only get in each other's way; rousing and starting is mostly
/// waiting.
const WORKERS: usize = 8;

/// Does `work` for each job, and answers in their order. A job that is not done by the deadline has no answer; its thread
/// is left behind and ends with the process.
pub fn each<J, A>(
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
    let (tell, told) = channel();
    for _ in 0..workers {
        let (queue, work, tell) = (Arc::clone(&queue), Arc::clone(&work), tell.clone());
        let worker = move || {
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some((index, job)) = next else { return };
                if Instant::now() >= deadline || tell.send((index, work(job))).is_err() {
                    return;
                }
            }
        };
        // With fewer threads than wanted it only takes longer.
        let _ = std::thread::Builder::new().name("wake-up".into()).spawn(worker);
    }
    drop(tell);
    loop {
        match told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((index, answer)) => {
                if let Some(place) = answers.get_mut(index) {
                    *place = Some(answer);
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
        let answers = each((0..100).collect(), deadline, |n: u64| {
            std::thread::sleep(Duration::from_millis(n % 7));
            n * 2
        });
        assert_eq!(answers, (0..100).map(|n| Some(n * 2)).collect::<Vec<_>>());
        assert!(each(Vec::<u64>::new(), deadline, |n| n).is_empty());
    }

    #[test]
    fn one_that_hangs_is_left_behind_and_the_others_are_served() {
        let answers = each(vec![1, 2, 3], Instant::now() + Duration::from_secs(2), |n| {
            if n == 2 {
                std::thread::sleep(Duration::from_hours(1));
            }
            n
        });
        assert_eq!(answers, [Some(1), None, Some(3)]);
    }
}
