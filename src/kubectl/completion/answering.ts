/**
 * `kubectl __complete WORD… LAST`: answers the completion scripts of shells. LAST is the incomplete word and may be
 * empty. It prints one choice a line and the directive last, and describes the directive on standard error.
 */
import type { Command, CommandRow } from '../command.ts'
import { KubectlError } from '../errors.ts'
import type { KubectlContext } from '../kubectl.ts'
import { flagsFor, globalValues } from '../line-flags.ts'
import { findCommand, type CommandMatch, nextWord } from '../lookup.ts'
import { Session } from '../session/session.ts'
import { type Answer, answerText, DEFAULT, directiveText, NO_FILES, withoutFiles } from './answer.ts'
import type { CompletionContext } from './cluster.ts'
import { describedPlugin, pluginAnswer, pluginWords, wordsBehind } from './plugins.ts'
import { flagNames, type Question, QuestionError, questionOf, requiredFlags } from './question.ts'
import { argumentsOf, valuesOf } from './sources.ts'

export interface AnswerContext {
  readonly root: Command
  readonly signal: AbortSignal
}

/** Requests choices without descriptions. */
const BARELY = '__completeNoDesc'

/** Prints the answer and resolves to the exit code. Throws KubectlError without a word to complete. */
export async function answer(context: KubectlContext, answering: AnswerContext): Promise<number> {
  const [command, ...words] = context.args
  const typed = words.pop()
  if (typed === undefined) throw new KubectlError('requires at least 1 arg(s), only received 0')
  const found = await answerOf({ ...context, args: words }, answering, typed).catch((error: unknown): Answer => {
    if (!(error instanceof QuestionError)) throw error
    context.stderr.write(`[Debug] [Error] ${error.message}\n`)
    return { choices: [], directive: DEFAULT }
  })
  context.stdout.write(answerText(found, command !== BARELY && isDescribed(context.env)))
  context.stderr.write(`Completion ended with directive: ${directiveText(found.directive)}\n`)
  return 0
}

function isDescribed(env: KubectlContext['env']): boolean {
  const setting = env['KUBECTL_COMPLETION_DESCRIPTIONS'] ?? env['COBRA_COMPLETION_DESCRIPTIONS'] ?? ''
  return !['0', 'f', 'F', 'false', 'False', 'FALSE'].includes(setting)
}

async function answerOf(context: KubectlContext, answering: AnswerContext, typed: string): Promise<Answer> {
  const { args, env } = context
  const { root } = answering
  if (args[0] === 'help') return helpAnswer(context, root, typed)
  const found = await findCommand({ command: root, path: ['kubectl'], args }, env)
  if (found.command === root && nextWord(found, env) >= 0) {
    const fromPlugin = args[0]?.startsWith('-') ? undefined : await pluginAnswer(context, args, typed)
    if (fromPlugin !== undefined) return fromPlugin
    throw new QuestionError(`unable to find a command for arguments: [${args.join(' ')}]`)
  }
  const { command } = found
  const flags = flagsFor(command, env)
  const stopsAtArgs = command.stopsAtArgs === true
  const question = questionOf({ name: command.name, args: found.args, flags, stopsAtArgs }, typed)
  if (question.kind === 'nothing') return withoutFiles([])
  if (question.kind === 'flag-name') return withoutFiles(flagNames(flags, question, command === root))
  const values = globalValues(flags, question.parsed.values, env)
  const session = new Session({ ...context, flags: values, signal: answering.signal })
  try {
    const around = { ...context, session }
    if (question.kind === 'argument') return await argumentAnswer(around, { found, question })
    const { flag } = question
    const isOwn = Object.hasOwn(flags.own, flag?.name ?? '')
    return await valuesOf(command, flag?.name ?? '', isOwn)(around, question.parsed.args, question.typed)
  } finally {
    await session.close()
  }
}

/** `kubectl help` completes names of commands. */
async function helpAnswer({ args, env }: KubectlContext, root: Command, typed: string): Promise<Answer> {
  const found = await findCommand({ command: root, path: ['kubectl'], args: args.slice(1) }, env)
  if (found.command === root && nextWord(found, env) >= 0) return withoutFiles([])
  return withoutFiles(commandNames(found.command, root, typed))
}

const HELP: Pick<CommandRow, 'name' | 'short'> = { name: 'help', short: 'Help about any command' }

function commandNames({ commands = [] }: Command, root: Command, typed: string): string[] {
  // Help does not list the command `options`, but its full name works.
  const shown = commands.filter(({ hidden, name }) => hidden !== true || name === 'options')
  const rows = commands === root.commands ? [...shown, HELP] : shown
  return rows
    .filter(({ name }) => name.startsWith(typed))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, short }) => `${name}\t${short}`)
}

interface Argument {
  readonly found: CommandMatch
  readonly question: Question
}

async function argumentAnswer(around: CompletionContext, { found, question }: Argument): Promise<Answer> {
  const { typed, parsed } = question
  const { command } = found
  const required = requiredFlags(flagsFor(command, around.env), question)
  const hasOwnFlags = Object.keys(command.flags).some((name) => parsed.changed.has(name))
  const mayBeCommand = parsed.args.length === 0 && !hasOwnFlags && (command.commands ?? []).length > 0
  const commands = mayBeCommand ? await subcommands(around, found, typed) : []
  const more = await argumentsOf(command)?.(around, parsed.args, typed)
  return {
    choices: [...commands, ...required, ...(more?.choices ?? [])],
    directive: more?.directive ?? (mayBeCommand ? NO_FILES : DEFAULT),
  }
}

/** Built-in commands, and plugins at the beginning of a line. */
async function subcommands(
  { env }: CompletionContext,
  { command, path, args }: CommandMatch,
  typed: string,
): Promise<string[]> {
  const isRoot = path.length === 1
  const own = commandNames(command, isRoot ? command : NO_ROOT, typed)
  if (!isRoot || args.length > 0) return own
  const added = wordsBehind(await pluginWords(env['PATH'] ?? ''), [], command.commands ?? [])
  const described = added.filter((word) => word.startsWith(typed)).map(describedPlugin)
  return [...own, ...described].sort((one, other) => (nameIn(one) < nameIn(other) ? -1 : 1))
}

const NO_ROOT: Command = { name: '', use: '', long: '', flags: {} }

function nameIn(choice: string): string {
  return choice.split('\t')[0] ?? ''
}
