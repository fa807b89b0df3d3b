/** kubectl within this process: what it does well is not done twice. */
import { Readable, Writable } from 'node:stream'

import { type ProgramContext, ProgramError } from '#lib/program.ts'

/** Rejects with what it said when it fails. */
export async function runKubectl(
  context: Omit<ProgramContext, 'path' | 'args' | 'stdin' | 'stdout' | 'stderr'>,
  {
    kubeconfig,
    args,
    input = '',
  }: { readonly kubeconfig: string; readonly args: readonly string[]; readonly input?: string },
  signal: AbortSignal,
): Promise<void> {
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
      args: [`--kubeconfig=${kubeconfig}`, ...args],
      stdin: () => Readable.from([Buffer.from(input)]),
      stdout: collect(),
      stderr: collect(),
    },
    signal,
  )
  if (code !== 0) throw new ProgramError(words.trim())
}
