/** The cluster of the `hyperkube build` test: its cluster file, its commands and its state. */
import { execFile, spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'
import { stringifyYaml } from '#lib/yaml/yaml.ts'

import { HYPERKUBE } from '../ours.ts'
import type { TestMachine } from './machines.ts'

const run = promisify(execFile)

export interface BedOptions {
  readonly folder: string
  readonly machines: readonly TestMachine[]
  /** Of SSH. */
  readonly key: string
  /** How many of the machines are control planes, and how many are in the cluster to begin with. */
  readonly planes: number
  readonly count: number
}

export interface FileChanges {
  /** Roles by name of the machine; those that are not in it are as at first. */
  readonly roles?: Readonly<Record<string, readonly string[] | undefined>>
  readonly top?: Readonly<Record<string, unknown>>
}

/** A Deployment of four pods that wait. */
export const QUIET: object = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'quiet' },
  spec: {
    replicas: 4,
    selector: { matchLabels: { app: 'quiet' } },
    template: {
      metadata: { labels: { app: 'quiet' } },
      spec: {
        // The one image that every node has without a registry.
        containers: [{ name: 'quiet', image: 'hyperkube.local/pause:1', imagePullPolicy: 'Never' }],
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'kubernetes.io/hostname',
            whenUnsatisfiable: 'ScheduleAnyway',
            labelSelector: { matchLabels: { app: 'quiet' } },
          },
        ],
      },
    },
  },
}

export interface NodeJson {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly unschedulable?: boolean }
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] }
}

export interface PodJson {
  readonly metadata: { readonly uid: string; readonly name: string; readonly deletionTimestamp?: string }
  readonly spec: { readonly nodeName?: string }
  readonly status: {
    readonly phase: string
    readonly conditions?: NodeJson['status']['conditions']
    readonly containerStatuses?: readonly { readonly restartCount: number }[]
  }
}

export class Bed {
  readonly options: BedOptions

  constructor(options: BedOptions) {
    this.options = options
  }

  say(text: string): void {
    process.stdout.write(`${text}\n`)
  }

  machine(name: string): TestMachine {
    const found = this.options.machines.find((machine) => machine.name === name)
    if (found === undefined) throw new Error(`There is no machine ${name}`)
    return found
  }

  get planes(): readonly TestMachine[] {
    return this.options.machines.slice(0, this.options.planes)
  }

  /** Writes cluster.yml with the given changes. */
  async write({ roles = {}, top = {} }: FileChanges): Promise<void> {
    const { machines, planes, count, key, folder } = this.options
    const nodes = machines.flatMap(({ name, address }, at) => {
      const usual = at < planes ? ['controlplane', 'etcd'] : ['worker']
      const role = name in roles ? roles[name] : at < count ? usual : undefined
      return role === undefined ? [] : [{ address, user: 'root', hostname_override: name, role }]
    })
    const none = { provider: 'none' }
    const cluster = {
      ssh_key_path: key,
      nodes,
      network: { plugin: 'flannel' },
      ingress: none,
      monitoring: none,
      dns: none,
    }
    await writeFile(join(folder, 'cluster.yml'), stringifyYaml({ ...cluster, ...top }))
  }

  async hyperkube(...args: string[]): Promise<string> {
    const began = realClock.elapsed()
    this.say(`$ hyperkube ${args.join(' ')}`)
    const { stdout } = await run(HYPERKUBE, args, { cwd: this.options.folder, maxBuffer: 1 << 26 })
    this.say(`${stdout}(${((realClock.elapsed() - began) / 1000).toFixed(1)} s)`)
    return stdout
  }

  build(...args: string[]): Promise<string> {
    return this.hyperkube('build', ...args)
  }

  kubectl(...args: string[]): Promise<string> {
    return this.hyperkube('kubectl', '--kubeconfig=kube_config_cluster.yml', ...args)
  }

  async get<T>(...args: string[]): Promise<T> {
    const all = ['kubectl', '--kubeconfig=kube_config_cluster.yml', 'get', ...args, '-o', 'json']
    const { stdout } = await run(HYPERKUBE, all, { cwd: this.options.folder, maxBuffer: 1 << 26 })
    return JSON.parse(stdout) as T
  }

  /** By name: whether it is ready, and takes pods. */
  async nodes(): Promise<Map<string, { readonly isReady: boolean; readonly isOpen: boolean }>> {
    const { items } = await this.get<{ items: NodeJson[] }>('nodes')
    return new Map(
      items.map(({ metadata, spec, status }) => [
        metadata.name,
        {
          isReady: status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
          isOpen: spec.unschedulable !== true,
        },
      ]),
    )
  }

  /** Those of the Deployment that are not on their way out, by uid. */
  async pods(): Promise<Map<string, { readonly isReady: boolean; readonly restarts: number; readonly node: string }>> {
    const { items } = await this.get<{ items: PodJson[] }>('pods', '-l', 'app=quiet')
    return new Map(
      items
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ metadata, spec, status }) => [
          metadata.uid,
          {
            isReady: status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true,
            restarts: status.containerStatuses?.[0]?.restartCount ?? 0,
            node: spec.nodeName ?? '',
          },
        ]),
    )
  }

  async deploy(): Promise<void> {
    await writeFile(join(this.options.folder, 'quiet.json'), JSON.stringify(QUIET))
    await this.kubectl('apply', '-f', 'quiet.json')
    await this.isWell()
    await this.kubectl('get', 'pods', '-o', 'wide')
  }

  /** All nodes of the file are ready, and all pods of the Deployment. */
  async isWell(): Promise<void> {
    await this.until('all nodes are ready', async () => {
      const nodes = await this.nodes()
      return nodes.size === this.options.count && [...nodes.values()].every(({ isReady, isOpen }) => isReady && isOpen)
    })
    await this.kubectl('rollout', 'status', 'deployment/quiet', '--timeout=180s')
  }

  /** Nothing that a plan could find different from what the file says. */
  async isSettled(): Promise<void> {
    const said = await this.build('up')
    if (!said.includes('Nothing to do')) throw new Error('A second run has something to do')
  }

  async until(what: string, asks: () => Promise<boolean>, timeoutMs = 180_000): Promise<void> {
    const limit = realClock.elapsed() + timeoutMs
    for (;;) {
      if (await asks().catch(() => false)) return
      if (realClock.elapsed() > limit) throw new Error(`It did not come to be that ${what}`)
      await sleep(realClock, 500)
    }
  }

  /** A writer on a machine that reaches API servers as workers do; `end` says how long it had to wait at most. */
  async startWriter({
    namespace,
  }: TestMachine): Promise<() => Promise<{ written: number; failed: number; gapMs: number }>> {
    const program = [process.execPath, join(import.meta.dirname, 'writer.ts')]
    const args = [join(this.options.folder, 'kube_config_cluster.yml'), 'https://127.0.0.1:6443']
    const child = spawn('nsenter', [`--net=/run/netns/${namespace}`, ...program, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    await this.until('the writer writes', () => Promise.resolve(text.includes('writing')), 30_000)
    return async () => {
      child.stdin.end()
      await this.until('the writer has ended', () => Promise.resolve(text.endsWith('}\n')), 30_000)
      return JSON.parse(text.slice(text.indexOf('{'))) as { written: number; failed: number; gapMs: number }
    }
  }
}
