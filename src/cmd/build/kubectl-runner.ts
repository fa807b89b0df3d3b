/** Runs kubectl commands of `hyperkube build` within this process. */
import { Readable, Writable } from 'node:stream'

import { type ProgramContext, ProgramError } from '#lib/program.ts'
import type { OperatorOptions } from '#provision/builder/operator-session.ts'
import type { RunKubectl } from '#provision/builder/session-options.ts'

/** The options of a session of the builder, which drains nodes and applies manifests with kubectl. */
export function withKubectl(options: Omit<OperatorOptions, 'kubectl'>): OperatorOptions {
  return { ...options, kubectl: kubectlRunner(options) }
}

/** Rejects with the output of a failed command. */
export function kubectlRunner(
  context: Omit<ProgramContext, 'path' | 'args' | 'stdin' | 'stdout' | 'stderr'>,
): RunKubectl {
  return async ({ args, input }, signal) => {
    const { kubectl } = await import('../kubectl.ts')
    let words = ''
    const collect = (): Writable =>
      new Writable({
        write(chunk: Buffer, _, done) {
          words += chunk.toString()
          done()
        },
      })
    const code = await kubectl.run(
      {
        ...context,
        path: ['kubectl'],
        args,
        stdin: () => Readable.from([Buffer.from(input)]),
        stdout: collect(),
        stderr: collect(),
      },
      signal,
    )
    if (code !== 0) throw new ProgramError(words.trim())
  }
}
