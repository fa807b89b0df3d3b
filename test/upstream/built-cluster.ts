/** Drives a cluster that `hyperkube server` builds on test machines: its file, its Operations and its kubectl. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'
import { stringifyYaml } from '#lib/yaml/yaml.ts'

import type { TestMachine } from './build/machines.ts'
import type { ManagementServer } from './management-server.ts'
import { HYPERKUBE } from './ours.ts'

const run = promisify(execFile)
const LIMIT_MS = 600_000
const MAX_BYTES = 1 << 26

export interface ClusterView {
  readonly metadata: { readonly name: string }
  readonly status?: {
    readonly conditions?: readonly ConditionView[]
    readonly nodes?: { readonly total: number; readonly ready: number }
    readonly agent?: { readonly address?: string }
    readonly build?: { readonly sshPublicKey?: string; readonly hostKeys?: readonly object[] }
  }
}

export interface ConditionView {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

export interface OperationView {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly type: string }
  readonly status?: {
    readonly phase?: string
    readonly message?: string
    readonly plan?: { readonly steps: readonly object[]; readonly digest: string }
    readonly stages?: readonly StageView[]
  }
}

export interface StageView {
  readonly name: string
  readonly steps: readonly { readonly state: string }[]
}

/** Prints a line with the time. */
export function say(text: string): void {
  process.stdout.write(`${new Date(realClock.now()).toISOString().slice(11, 19)} ${text}\n`)
}

/** Throws if it is false. */
export function check(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`Not true: ${what}`)
  say(`  ok: ${what}`)
}

/** A cluster file with one role list for each machine. `top` adds or replaces fields of the file. */
export function fileFor(
  machines: readonly TestMachine[],
  roles: readonly (readonly string[])[],
  top: Readonly<Record<string, unknown>> = {},
): string {
  const nodes = machines.map(({ name, address }, at) => ({
    address,
    user: 'root',
    hostname_override: name,
    role: roles[at],
  }))
  const none = { provider: 'none' }
  return stringifyYaml({ nodes, network: { plugin: 'flannel' }, ingress: none, monitoring: none, dns: none, ...top })
}

export class BuiltCluster {
  readonly server: ManagementServer
  readonly folder: string
  /** `c-x7k2p`, after `create`. */
  name = ''

  /** Writes kubeconfigs into `folder`. */
  constructor(server: ManagementServer, folder: string) {
    this.server = server
    this.folder = folder
  }

  get path(): string {
    return `/v3/clusters/${this.name}`
  }

  async create(displayName: string, file: string): Promise<void> {
    const body = { displayName, source: 'built', file }
    const { cluster } = (await this.server.request('POST', '/v3/clusters', body)) as { readonly cluster: ClusterView }
    this.name = cluster.metadata.name
  }

  async view(): Promise<ClusterView> {
    return (await this.server.request('GET', this.path)) as ClusterView
  }

  /** The Operation that was created last. */
  async newest(): Promise<OperationView> {
    const { items } = (await this.server.request('GET', `${this.path}/operations`)) as { items: OperationView[] }
    const [first] = items
    if (first === undefined) return { metadata: { name: '' }, spec: { type: '' } }
    return (await this.server.request('GET', `${this.path}/operations/${first.metadata.name}`)) as OperationView
  }

  /** Calls `ask` until its result is neither undefined nor false. Errors of `ask` count as undefined. */
  async until<T>(what: string, ask: () => Promise<T | undefined | false>, limitMs: number = LIMIT_MS): Promise<T> {
    const limit = realClock.elapsed() + limitMs
    let failure: unknown
    for (;;) {
      const found = await ask().catch((error: unknown) => void (failure = error))
      if (found !== undefined && found !== false) return found
      if (realClock.elapsed() > limit) {
        const last = JSON.stringify(await this.newest().catch(() => undefined))
        throw new Error(`Not within ${limitMs / 1000} s: ${what}: ${last?.slice(0, 3000)}`, { cause: failure })
      }
      await sleep(realClock, 500)
    }
  }

  /** Waits until the newest Operation has this type and phase. */
  async reached(type: string, phase: string): Promise<OperationView> {
    const found = await this.until(`${type} is ${phase}`, async () => {
      const newest = await this.newest()
      return newest.spec.type === type && newest.status?.phase === phase && newest
    })
    say(`${type} ${found.metadata.name} is ${phase}`)
    return found
  }

  /** Creates an Operation that needs no approval, and waits for its success. */
  async perform(type: string, more: object = {}): Promise<OperationView> {
    const made = (await this.server.request('POST', `${this.path}/operations`, { type, ...more })) as OperationView
    const path = `${this.path}/operations/${made.metadata.name}`
    const done = await this.until(`${type} succeeds`, async () => {
      const now = (await this.server.request('GET', path)) as OperationView
      return now.status?.phase === 'Succeeded' && now
    })
    say(`${type} ${made.metadata.name} is Succeeded`)
    return done
  }

  async approve({ metadata, status }: OperationView): Promise<void> {
    const path = `${this.path}/operations/${metadata.name}/approve`
    await this.server.request('POST', path, { plan: status?.plan?.digest })
  }

  /** Changes the cluster file, approves the plan and waits for its success. */
  async apply(file: string): Promise<OperationView> {
    await this.server.request('PUT', `${this.path}/build`, { file })
    await this.approve(await this.reached('Apply', 'Planned'))
    return this.reached('Apply', 'Succeeded')
  }

  async ready(nodes: number): Promise<void> {
    await this.until(`${nodes} nodes are ready`, async () => {
      const { status } = await this.view()
      const isTrue = (type: string): boolean =>
        (status?.conditions ?? []).some((one) => one.type === type && one.status === 'True')
      return isTrue('Ready') && isTrue('Connected') && isTrue('Updated') && status?.nodes?.ready === nodes
    })
    say(`${nodes} nodes are ready, and the agent is connected`)
  }

  /** Through the server, with the kubeconfig that it gives to its users. */
  async kubectl(...args: string[]): Promise<string> {
    const file = join(this.folder, 'user.kubeconfig')
    await writeFile(file, await this.server.text('POST', `${this.path}/kubeconfig`, {}), { mode: 0o600 })
    return this.kubectlWith(file, ...args)
  }

  async kubectlWith(kubeconfig: string, ...args: string[]): Promise<string> {
    const all = ['kubectl', `--kubeconfig=${kubeconfig}`, ...args]
    const { stdout } = await run(HYPERKUBE, all, { maxBuffer: MAX_BYTES })
    return stdout
  }

  /** The objects of `kubectl get`. */
  async list<T>(...args: string[]): Promise<readonly T[]> {
    const { items } = JSON.parse(await this.kubectl('get', ...args, '-o', 'json')) as { readonly items: readonly T[] }
    return items
  }
}
