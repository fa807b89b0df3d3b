/** Creates network namespaces with unique names for tests, and removes them at the end. */
import { type ChildProcess, type ChildProcessByStdio, execFile, spawn } from 'node:child_process'
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
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

const unfinished = new Set<AsyncDisposableStack>()
let isEnding = false

/** Removes everything that `make` has created if it fails, and also on a signal such as Ctrl-C. */
export async function made<T>(make: (closing: AsyncDisposableStack) => Promise<T>): Promise<T> {
  if (unfinished.size === 0)
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.once(signal, () => {
        isEnding = true
        const all = [...unfinished].map((closing) => closing.disposeAsync())
        // The handler runs only once, so now this signal ends the process.
        void Promise.allSettled(all).then(() => process.kill(process.pid, signal))
      })
  if (isEnding) throw new Error('told to end: nothing is made any more')
  const closing = new AsyncDisposableStack()
  unfinished.add(closing)
  try {
    return await make(closing)
  } catch (error) {
    await closing.disposeAsync()
    throw error
  }
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

const PEER = fileURLToPath(new URL('peer.ts', import.meta.url))

/** One end of a wire to the node. */
export interface Host {
  readonly namespace: NetworkNamespace
  /**
   * Starts a server that responds with its name and the client's address, over TCP and UDP, until the namespace is
   * removed. Default address: all.
   */
  serve(name: string, port: number, address?: string): Promise<void>
  /** The responses, each over a new connection. */
  ask(protocol: 'tcp' | 'udp', address: string, port: number, times?: number): Promise<string[]>
  /** A connection that stays. */
  hold(address: string, port: number): Promise<Held>
  /** The same over UDP: packets from one port. */
  flow(address: string, port: number): Promise<Held>
}

export interface Held {
  /** The next response over this connection. */
  ask(): Promise<string>
}

export interface Network extends AsyncDisposable {
  /** Forwards between all others. */
  readonly node: Host
  /** Wires another host to it, in a network of its own: `10.244.7.2` sees the node as `10.244.7.1`. */
  add(label: string, ...addresses: readonly string[]): Promise<Host>
}

export async function createNetwork(): Promise<Network> {
  const closing = new AsyncDisposableStack()
  const children = new Set<ChildProcess>()
  const node = await createNamespace('node')
  closing.use(node)
  for (const [key, value] of [
    ['net.ipv4.ip_forward', '1'],
    ['net.ipv6.conf.all.forwarding', '1'],
  ] as const)
    await node.run('sysctl', '-qw', `${key}=${value}`)
  // Service addresses need a route, or programs on the node would not send packets to them.
  await node.run('ip', 'route', 'add', 'default', 'dev', 'lo')
  return {
    node: hostIn(node, children),
    async add(label, ...addresses) {
      const host = await createNamespace(label)
      closing.use(host)
      const here = `v${host.name.slice(-6)}`
      await node.run('ip', 'link', 'add', here, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', host.name)
      await node.run('ip', 'link', 'set', here, 'up')
      await host.run('ip', 'link', 'set', 'eth0', 'up')
      for (const address of addresses) {
        const gateway = address.replace(/[^.:]+$/, '1')
        const [length, ...more] = address.includes(':') ? ['64', 'nodad'] : ['24']
        await node.run('ip', 'address', 'add', `${gateway}/${length}`, 'dev', here, ...more)
        await host.run('ip', 'address', 'add', `${address}/${length}`, 'dev', 'eth0', ...more)
        await host.run('ip', 'route', 'add', 'default', 'via', gateway)
      }
      return hostIn(host, children)
    },
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill('SIGKILL')
      await closing.disposeAsync()
    },
  }
}

function hostIn(namespace: NetworkNamespace, children: Set<ChildProcess>): Host {
  const start = (...args: readonly string[]): ChildProcessByStdio<Writable, Readable, null> => {
    const [first = '', ...rest] = [...namespace.within, process.execPath, PEER, ...args]
    const child = spawn(first, rest, { stdio: ['pipe', 'pipe', 'inherit'] })
    children.add(child)
    child.on('exit', () => children.delete(child))
    return child
  }
  return {
    namespace,
    async serve(name, port, address = '::') {
      const lines = linesOf(start('serve', name, address, String(port)).stdout)
      await lines.next()
    },
    async ask(protocol, to, port, times = 1) {
      const answers: string[] = []
      const child = start('ask', protocol, to, String(port), String(times))
      for await (const line of linesOf(child.stdout)) answers.push(line)
      return answers
    },
    hold: (to, port) => asking(start('hold', to, String(port))),
    flow: (to, port) => asking(start('flow', to, String(port))),
  }
}

async function asking({ stdin, stdout }: ChildProcessByStdio<Writable, Readable, null>): Promise<Held> {
  const lines = linesOf(stdout)
  await lines.next()
  return {
    async ask() {
      stdin.write('\n')
      return (await lines.next()).value ?? 'ended'
    },
  }
}

async function* linesOf(stream: Readable): AsyncGenerator<string, undefined> {
  for await (const line of createInterface({ input: stream })) yield JSON.parse(line) as string
  return undefined
}
