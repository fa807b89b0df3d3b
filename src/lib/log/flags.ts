/** The logging flags of component-base, and the log that they configure. */
import type { Clock } from '../clock.ts'
import { type Flag, flag, type FlagValues } from '../flags/flags.ts'
import { parseInteger } from '../flags/go-literals.ts'
import { bool, customKind, duration, type Kind, oneOf } from '../flags/kinds.ts'
import { createLog, type Log, type LogStream } from './log.ts'
import { parseVmodule, type VmoduleRule } from './vmodule.ts'

const level: Kind<number> = customKind('Level', (text) => parseInteger(text, 32), String)

const vmodule: Kind<readonly VmoduleRule[]> = customKind('pattern=N,...', parseVmodule, (rules) => {
  return rules.map((rule) => `${rule.pattern}=${rule.level}`).join(',')
})

/** The group "logs" of a program's flags. */
export const LOG_FLAGS: {
  readonly 'log-flush-frequency': Flag<number>
  readonly 'log-json-split-stream': Flag<boolean>
  readonly 'log-text-split-stream': Flag<boolean>
  readonly 'logging-format': Flag<'text' | 'json'>
  readonly v: Flag<number>
  readonly vmodule: Flag<readonly VmoduleRule[]>
} = {
  // Lines are flushed at the end of the work that wrote them, so any flush frequency is honoured.
  'log-flush-frequency': flag(duration, 5_000, 'Maximum number of seconds between log flushes'),
  'log-json-split-stream': flag(
    bool,
    false,
    'In JSON format, write error messages to stderr and info messages to stdout',
  ),
  'log-text-split-stream': flag(
    bool,
    false,
    'In text format, write error messages to stderr and info messages to stdout',
  ),
  'logging-format': flag(oneOf('text', 'json'), 'text', 'Sets the log format. Permitted formats: "json", "text".'),
  v: flag(level, 0, 'number for the log level verbosity', { shorthand: 'v' }),
  vmodule: flag(vmodule, [], 'comma-separated list of pattern=N settings for loggers by name'),
}

export interface LogStreams {
  readonly clock: Clock
  readonly stdout: LogStream
  readonly stderr: LogStream
}

/** The log that a program's parsed flags ask for; the flags of LOG_FLAGS may be absent. */
export function openLog(flags: Readonly<Record<string, unknown>>, streams: LogStreams): Log {
  const logFlags = flags as Partial<FlagValues<{ logs: typeof LOG_FLAGS }>>
  const format = logFlags['logging-format'] ?? 'text'
  return createLog({
    clock: streams.clock,
    stream: logFlags[`log-${format}-split-stream`] ? streams.stdout : streams.stderr,
    errorStream: streams.stderr,
    format,
    verbosity: logFlags.v ?? 0,
    vmodule: logFlags.vmodule ?? [],
  })
}
