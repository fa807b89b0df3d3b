/** Runs a program inside a test, with a virtual clock, seeded randomness, no files and captured output. */
import { PassThrough, Writable } from 'node:stream'

import { createVirtualClock } from '#lib/clock.ts'
import type { ProgramContext } from '#lib/program.ts'
import { createSeededRandom } from '#lib/random.ts'

export interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Calls `start` with a harmless context plus `changes`, and captures the output. */
export async function runProgram(
  start: (context: ProgramContext) => Promise<number>,
  changes: Partial<ProgramContext> & Pick<ProgramContext, 'args'>,
): Promise<Outcome> {
  const [stdout, stderr] = [new Collector(), new Collector()]
  const code = await start({
    path: ['program'],
    env: {},
    cwd: '/nowhere',
    stdin: () => new PassThrough().end(),
    stdout,
    stderr,
    clock: createVirtualClock(),
    random: createSeededRandom(1),
    readFile: (path) => Promise.reject(Object.assign(new Error(`no such file: ${path}`), { code: 'ENOENT' })),
    ...changes,
  })
  return { code, out: stdout.text, err: stderr.text }
}

/** A stream that collects its input. */
export class Collector extends Writable {
  text = ''

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}
