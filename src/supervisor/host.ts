/**
 * The seam to the machine: everything that the supervisor may see of it or do to it. There is one for Linux, one for Windows
 * and a simulated Windows on a virtual clock; what the supervisor decides is the same for all of them.
 */
import type { Clock } from '#lib/clock.ts'

import type { Layout } from './layout.ts'
import type { ProcessName } from './process-names.ts'

export interface Host {
  readonly system: 'linux' | 'windows'
  readonly layout: Layout
  readonly clock: Clock
  /** For people: what is being done. */
  readonly say: (text: string) => void
  readonly files: HostFiles
  readonly processes: HostProcesses
  readonly environment: HostEnvironment
  readonly network: HostNetwork
  readonly web: HostWeb
}

export interface HostFiles {
  exists(path: string): Promise<boolean>
  /** undefined when there is none. */
  read(path: string): Promise<string | undefined>
  /** Whole or not at all. Folders on the way are made; nobody else may read it. */
  write(path: string, text: string): Promise<void>
  /**
   * Removes all that is in a folder, which stays. Nothing happens where there is no folder. Rejects, without touching
   * anything, when something else is mounted in it: what is there belongs to others.
   */
  empty(folder: string): Promise<void>
  makeFolder(path: string): Promise<void>
  /** A file, or a folder that is empty. There may be none. */
  remove(path: string): Promise<void>
  /** Takes the place of another file. */
  move(from: string, to: string): Promise<void>
  /** The whole body into a file. */
  download(url: string, path: string, timeoutMs: number): Promise<void>
  /** Of the content, in hex. */
  sha256(path: string): Promise<string>
  /** Subject of the certificate by which the system trusts a program; undefined where it trusts none. */
  signer(path: string): Promise<string | undefined>
}

export interface Launch {
  readonly name: ProcessName
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Where what it says as an error goes; else nowhere. */
  readonly errorsTo?: string | undefined
}

export interface HostProcesses {
  /** Of those that live, whoever started them. */
  find(name: ProcessName): Promise<readonly number[]>
  /** The process that was made; whether it stays is another question. */
  launch(launch: Launch): Promise<number>
  isAlive(pid: number): Promise<boolean>
  /** Ends all of that name by force and waits until they have gone. There may be none. */
  kill(name: ProcessName): Promise<void>
  /** What another program prints. Rejects when it fails. */
  output(program: string, args: readonly string[], options?: OutputOptions): Promise<string>
}

export interface OutputOptions {
  /** Beside that of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** What it reads. */
  readonly input?: string
}

/** Variables that outlive the process: read from the process first, then from the machine; written to both. */
export interface HostEnvironment {
  get(name: string): Promise<string | undefined>
  /** Without what this process was given. */
  ofMachine(name: string): Promise<string | undefined>
  set(name: string, value: string): Promise<void>
  /** There may be none. */
  remove(name: string): Promise<void>
}

export interface Adapter {
  readonly name: string
  readonly index: number
  readonly address: string
  readonly prefixLength: number
  /** Of its default route. */
  readonly gateway?: string | undefined
}

export interface Route {
  readonly prefix: string
  readonly interfaceIndex: number
  readonly gateway: string
  readonly metric: number
}

export interface HostNetwork {
  adapters(): Promise<readonly Adapter[]>
  /** Until the next start of the machine. Rejects when there is one already. */
  addRoute(route: Route): Promise<void>
  /** The networks that pods can be on. */
  readonly pods: PodNetworks
  /** The proxy on this machine that leads to the API servers; its connections die with the network under them. */
  restartProxy(): Promise<void>
}

export interface PodNetwork {
  readonly id: string
  readonly name: string
  /** In lower case: `overlay`, `l2bridge`; on Linux `vxlan`, `host-gw`. */
  readonly type: string
  /** Of its first subnet. */
  readonly prefix?: string | undefined
}

export interface PodNetworks {
  list(): Promise<readonly PodNetwork[]>
  remove(id: string): Promise<void>
  /** What is left of Services of an earlier kube-proxy. */
  removeServicePolicies(): Promise<void>
}

export interface HostWeb {
  /** The body of an answer that is good; rejects otherwise. */
  get(url: string, headers: Readonly<Record<string, string>>, timeoutMs: number): Promise<string>
}
