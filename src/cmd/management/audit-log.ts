/**
 * The audit log of the management server: one line of JSON for each request, in a file that rotates as
 * kube-apiserver's does.
 */
import { resolve } from 'node:path'

import type { LineWriter } from '#apiserver/audit/log-sink.ts'
import { openRotatingFile } from '#apiserver/audit/rotating-file.ts'
import type { Clock } from '#lib/clock.ts'
import { type Flag, flag } from '#lib/flags/flags.ts'
import { int, string } from '#lib/flags/kinds.ts'
import { latin1 } from '#lib/latin1.ts'
import type { Logger } from '#lib/log/log.ts'
import { ProgramError } from '#lib/program.ts'

type NumberName = 'audit-log-maxsize' | 'audit-log-maxbackup' | 'audit-log-maxage'

export const AUDIT_FLAGS: { readonly 'audit-log-path': Flag<string> } & Readonly<Record<NumberName, Flag<number>>> = {
  'audit-log-path': flag(
    string,
    '',
    'The `file` with one JSON line for each request: who, what, which cluster (default: audit.log in the data directory; - is standard output)',
  ),
  'audit-log-maxsize': flag(int, 100, 'Megabytes at which the audit log is rotated. 0: never'),
  'audit-log-maxbackup': flag(int, 100, 'How many rotated audit logs are kept. 0: all'),
  'audit-log-maxage': flag(int, 366, 'Days for which rotated audit logs are kept. 0: for ever'),
}

export interface AuditLog {
  /** Never waits and never throws. */
  write(event: object): void
  /** How many lines could not be written. */
  readonly lost: number
  close(): Promise<void>
}

export interface AuditLogOptions {
  readonly flags: { readonly 'audit-log-path': string } & Readonly<Record<NumberName, number>>
  /** The file without a flag. */
  readonly defaultPath: string
  readonly cwd: string
  readonly stdout: { write(text: string): unknown }
  readonly clock: Clock
  readonly log: Logger
}

const MEGABYTE = 1 << 20
/** A disk that does not answer must not fill the memory. */
const MAX_WAITING_LINES = 100_000

/** Throws ProgramError if the file cannot be written. */
export async function openAuditLog(options: AuditLogOptions): Promise<AuditLog> {
  const { clock, stdout } = options
  const lineOf = (event: object): string =>
    `${JSON.stringify({ time: new Date(clock.now()).toISOString(), ...event })}\n`
  if (options.flags['audit-log-path'] === '-') {
    return { write: (event) => void stdout.write(lineOf(event)), lost: 0, close: () => Promise.resolve() }
  }
  const file = new CountedLines(await openFile(options), options.log)
  return {
    write: (event) => file.write(latin1(lineOf(event))),
    get lost() {
      return file.lost
    },
    close: () => file.close(),
  }
}

async function openFile({ flags, defaultPath, cwd, clock, log }: AuditLogOptions): Promise<LineWriter> {
  const path = flags['audit-log-path'] === '' ? defaultPath : resolve(cwd, flags['audit-log-path'])
  try {
    return await openRotatingFile(path, {
      clock,
      maxBytes: flags['audit-log-maxsize'] * MEGABYTE,
      maxBackups: flags['audit-log-maxbackup'],
      maxAgeDays: flags['audit-log-maxage'],
      compress: false,
      onError: (error) => log.error(error, 'Failed to remove old audit logs'),
    })
  } catch (cause) {
    throw new ProgramError(`Cannot write the audit log: ${(cause as Error).message}`, { cause })
  }
}

/** Reports the first line that is lost, and when lines are written again. */
class CountedLines {
  readonly #writer: LineWriter
  readonly #log: Logger
  lost = 0
  #lostInARow = 0
  #waiting = 0

  constructor(writer: LineWriter, log: Logger) {
    this.#writer = writer
    this.#log = log
  }

  write(line: string): void {
    if (this.#waiting >= MAX_WAITING_LINES) return this.#lose(new Error(`${this.#waiting} lines wait for the disk`))
    this.#waiting++
    this.#writer.write(line).then(
      () => this.#written(),
      (error: unknown) => {
        this.#waiting--
        this.#lose(error)
      },
    )
  }

  close(): Promise<void> {
    return this.#writer.close()
  }

  #written(): void {
    this.#waiting--
    if (this.#lostInARow > 0) this.#log.info('Resumed writing the audit log', { lost: this.#lostInARow })
    this.#lostInARow = 0
  }

  #lose(error: unknown): void {
    this.lost++
    if (this.#lostInARow++ === 0) this.#log.error(error, 'Failed to write the audit log')
  }
}
