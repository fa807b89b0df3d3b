/** Network namespaces for tests: their own names, gone again with the test. */
import { execFile } from 'node:child_process'
import process from 'node:process'
import { promisify } from 'node:util'

import { pick, secureRandom } from '#lib/random.ts'

const run = promisify(execFile)

/** Why there can be none on this machine; undefined when there can. */
export async function whyNoNetworks(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  for (const [program, args] of [
    ['ip', ['netns', 'list']],
    ['nft', ['--version']],
  ] as const) {
    const failure = await run(program, args).then(
      () => undefined,
      () => `${program} is missing or may not be used`,
    )
    if (failure !== undefined) return failure
  }
  return undefined
}

export interface NetworkNamespace extends AsyncDisposable {
  readonly name: string
  /** To be put before a program that is to run in it. */
  readonly within: readonly string[]
  /** Runs a program in it; what it writes to stdout. */
  run(program: string, ...args: readonly string[]): Promise<string>
}

/** A namespace with its loopback up. */
export async function createNamespace(label: string): Promise<NetworkNamespace> {
  const name = `hk-${label}-${pick(secureRandom, '0123456789abcdef', 6)}`
  const within = ['ip', 'netns', 'exec', name]
  await run('ip', ['netns', 'add', name])
  const namespace: NetworkNamespace = {
    name,
    within,
    run: async (program, ...args) => (await run('ip', [...within.slice(1), program, ...args])).stdout,
    [Symbol.asyncDispose]: async () => {
      await run('ip', ['netns', 'delete', name])
    },
  }
  await namespace.run('ip', 'link', 'set', 'lo', 'up')
  return namespace
}
