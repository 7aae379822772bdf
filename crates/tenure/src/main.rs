use std::process::ExitCode;

fn main() -> ExitCode {
    tenure::run(std::env::args_os(), tenure::Env::of_this_process(), &mut tenure::Output::standard())
}
