//! The table of commands: one line per command or verb, from which [`verbs!`] generates everything that has to know them
//! all.
//!
//! Guarantees: the parser that writes help and errors, the fast parser, the names in JSON envelopes and the dispatch come
//! from the same line, so they cannot disagree.

use crate::answer::Answer;
use crate::app::App;
use crate::fast_parser::Definition;
use crate::printer::CommandName;
use crate::report::{CommandResult, Report};

/// The commands of one table. Implemented by [`verbs!`].
pub(crate) trait Commands: Sized {
    /// What the fast parser needs: the names and arguments of every command.
    const DEFINITIONS: &'static [Definition];

    /// The command that the words begin with, if it takes no further words as names of verbs.
    fn leaf(words: &[&str]) -> Option<Leaf<Self>>;

    /// The command's name, and its verb's if it has verbs.
    fn name(&self) -> CommandName<'static>;

    fn run(self, app: &mut App<'_>) -> CommandResult<Option<Answer>>;
}

/// A command without verbs, to be parsed by itself.
pub(crate) struct Leaf<C> {
    /// How many words name it.
    pub(crate) depth: usize,
    pub(crate) add_args: fn(clap::Command) -> clap::Command,
    pub(crate) read: Read<C>,
}

/// Reads a command from its parsed arguments.
pub(crate) type Read<C> = Box<dyn Fn(&clap::ArgMatches) -> Result<C, clap::Error>>;

/// The arguments of a command that has verbs, such as `tenure locks`.
pub(crate) trait Group {
    type Verb: Commands;

    const VERBS: &'static [Definition];

    /// The arguments of the command with this verb and no options before it.
    fn with_verb(verb: Self::Verb) -> Self;

    /// The name of the given verb, or of the one that runs when none is given. `None` for a command that also works
    /// without a verb.
    fn verb_name(&self) -> Option<&'static str>;

    /// Adds the arguments that the command takes without a verb. Most take none.
    fn without_verb(command: clap::Command) -> clap::Command {
        command
    }
}

/// What a verb's `run` may return. A verb without an [`Answer`] has printed its output itself.
pub(crate) trait VerbResult {
    fn into_result(self) -> CommandResult<Option<Answer>>;
}

impl VerbResult for () {
    fn into_result(self) -> CommandResult<Option<Answer>> {
        Ok(None)
    }
}

impl VerbResult for Answer {
    fn into_result(self) -> CommandResult<Option<Answer>> {
        Ok(Some(self))
    }
}

impl VerbResult for Option<Answer> {
    fn into_result(self) -> CommandResult<Option<Answer>> {
        Ok(self)
    }
}

impl<T: VerbResult> VerbResult for CommandResult<T> {
    fn into_result(self) -> CommandResult<Option<Answer>> {
        self.and_then(T::into_result)
    }
}

/// The error for options of the default verb before the name of another one.
pub(crate) fn misplaced_options(default: &str) -> Report {
    Report::usage(format!(
        "options before the subcommand belong to `{default}`; write those of another subcommand after it"
    ))
}

/// Declares an enum of commands. Each line names a command, its alias if it has one, the enum's variant, and the module
/// that holds `Args` and `run`:
///
/// ```text
/// verbs! {
///     enum Verb, default List;
///     "list" => List(list),
///     "approve" | "verify" => Approve(approve),
///     "cron" => Cron(cron) with verbs,
///     #[command(hide = true)]
///     "deliver" => Deliver(deliver),
/// }
/// ```
///
/// `with verbs` marks a module that has its own table. `default List` generates, for an `Args` with the field
/// `verb: Option<Verb>`, its [`Group`] and the module's `run`; without it both are written by hand. `default List(list)` is
/// for a default verb that takes arguments; they are in the further field `default: list::Args`.
macro_rules! verbs {
    (enum $Enum:ident, default $Default:ident($default_module:ident); $($table:tt)+) => {
        $crate::verbs::verbs! { enum $Enum; $($table)+ }

        impl $crate::verbs::Group for Args {
            type Verb = $Enum;

            const VERBS: &'static [$crate::fast_parser::Definition] =
                <$Enum as $crate::verbs::Commands>::DEFINITIONS;

            fn with_verb(verb: $Enum) -> Self {
                Self { verb: Some(verb), default: Default::default() }
            }

            fn verb_name(&self) -> Option<&'static str> {
                let name = $crate::verbs::Commands::name;
                let default = || $Enum::$Default(Box::default());
                Some(self.verb.as_ref().map_or_else(|| name(&default()), name).command)
            }

            fn without_verb(command: clap::Command) -> clap::Command {
                <$default_module::Args as clap::Args>::augment_args(command)
            }
        }

        pub(crate) fn run(
            app: &mut $crate::app::App<'_>,
            args: Args,
        ) -> $crate::report::CommandResult<Option<$crate::answer::Answer>> {
            use $crate::verbs::Commands;
            match args.verb {
                None => $Enum::$Default(Box::new(args.default)).run(app),
                Some(_) if args.default != $default_module::Args::default() => {
                    let default = $Enum::$Default(Box::default()).name().command;
                    Err($crate::verbs::misplaced_options(default))
                }
                Some(verb) => verb.run(app),
            }
        }
    };

    (enum $Enum:ident, default $Default:ident; $($table:tt)+) => {
        $crate::verbs::verbs! { enum $Enum; $($table)+ }

        impl Default for $Enum {
            fn default() -> Self {
                Self::$Default(Box::default())
            }
        }

        impl $crate::verbs::Group for Args {
            type Verb = $Enum;

            const VERBS: &'static [$crate::fast_parser::Definition] =
                <$Enum as $crate::verbs::Commands>::DEFINITIONS;

            fn with_verb(verb: $Enum) -> Self {
                Self { verb: Some(verb) }
            }

            fn verb_name(&self) -> Option<&'static str> {
                let name = $crate::verbs::Commands::name;
                Some(self.verb.as_ref().map_or_else(|| name(&$Enum::default()), name).command)
            }
        }

        pub(crate) fn run(
            app: &mut $crate::app::App<'_>,
            args: Args,
        ) -> $crate::report::CommandResult<Option<$crate::answer::Answer>> {
            $crate::verbs::Commands::run(args.verb.unwrap_or_default(), app)
        }
    };

    (enum $Enum:ident; $(
        $(#[cfg($cfg:meta)])?
        $(#[command($attribute:meta)])?
        $name:literal $(| $alias:literal)? => $Variant:ident($module:ident) $(with $verbs:ident)?
    ),+ $(,)?) => {
        // Boxed, because the verbs' arguments differ in size and a process parses only one of them.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum $Enum {
            $(
                $(#[cfg($cfg)])?
                #[command(name = $name)]
                $(#[command(visible_alias = $alias)])?
                $(#[command($attribute)])?
                $Variant(Box<$module::Args>),
            )+
        }

        impl $crate::verbs::Commands for $Enum {
            const DEFINITIONS: &'static [$crate::fast_parser::Definition] = &[$(
                $(#[cfg($cfg)])?
                $crate::fast_parser::Definition {
                    name: $name,
                    alias: $crate::verbs::verbs!(@optional $($alias)?),
                    add_args: $crate::verbs::verbs!(@add_args $module $($verbs)?),
                    verbs: $crate::verbs::verbs!(@definitions $module $($verbs)?),
                },
            )+];

            fn leaf(words: &[&str]) -> Option<$crate::verbs::Leaf<Self>> {
                let (name, rest) = words.split_first()?;
                match *name {
                    $(
                        $(#[cfg($cfg)])?
                        $name $(| $alias)? => $crate::verbs::verbs!(@leaf rest $Variant($module) $($verbs)?),
                    )+
                    _ => None,
                }
            }

            fn name(&self) -> $crate::printer::CommandName<'static> {
                match self {
                    $(
                        $(#[cfg($cfg)])?
                        Self::$Variant(args) => $crate::printer::CommandName {
                            command: $name,
                            subcommand: $crate::verbs::verbs!(@verb_name args $($verbs)?),
                        },
                    )+
                }
            }

            fn run(
                self,
                app: &mut $crate::app::App<'_>,
            ) -> $crate::report::CommandResult<Option<$crate::answer::Answer>> {
                match self {
                    $(
                        $(#[cfg($cfg)])?
                        Self::$Variant(args) => {
                            $crate::verbs::VerbResult::into_result($module::run(app, *args))
                        }
                    )+
                }
            }
        }
    };

    (@leaf $rest:ident $Variant:ident($module:ident)) => {{
        let _ = $rest;
        Some($crate::verbs::Leaf {
            depth: 1,
            add_args: <$module::Args as clap::Args>::augment_args,
            read: Box::new(|matches| {
                let args = <$module::Args as clap::FromArgMatches>::from_arg_matches(matches)?;
                Ok(Self::$Variant(Box::new(args)))
            }),
        })
    }};
    (@leaf $rest:ident $Variant:ident($module:ident) verbs) => {{
        use $crate::verbs::Group;
        let verb = <<$module::Args as Group>::Verb as $crate::verbs::Commands>::leaf($rest)?;
        Some($crate::verbs::Leaf {
            depth: verb.depth + 1,
            add_args: verb.add_args,
            read: Box::new(move |matches| {
                Ok(Self::$Variant(Box::new(<$module::Args as Group>::with_verb((verb.read)(matches)?))))
            }),
        })
    }};
    (@optional) => { None };
    (@optional $value:literal) => { Some($value) };
    (@add_args $module:ident) => { <$module::Args as clap::Args>::augment_args };
    (@add_args $module:ident verbs) => { <$module::Args as $crate::verbs::Group>::without_verb };
    (@definitions $module:ident) => { &[] };
    (@definitions $module:ident verbs) => { <$module::Args as $crate::verbs::Group>::VERBS };
    (@verb_name $args:ident) => {{
        let _ = $args;
        None
    }};
    (@verb_name $args:ident verbs) => { $crate::verbs::Group::verb_name(&**$args) };
}

pub(crate) use verbs;
