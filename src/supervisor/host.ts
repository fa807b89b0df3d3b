/**
 * The interface to the machine: everything that the supervisor observes or changes. Implementations exist for Linux,
 * Windows, and a simulated Windows on a virtual clock; the decisions are the same for all.
 */
import type { Clock } from '#lib/clock.ts'

import type { Layout } from './layout.ts'
import type { ProcessName } from './process-names.ts'

export interface Host {
  readonly system: 'linux' | 'windows'
  readonly layout: Layout
  readonly clock: Clock
  /** A progress message for people. */
  readonly say: (text: string) => void
  readonly files: HostFiles
  readonly processes: HostProcesses
  readonly environment: HostEnvironment
  readonly network: HostNetwork
  readonly web: HostWeb
}

export interface HostFiles {
  exists(path: string): Promise<boolean>
  /** Undefined if it does not exist. */
  read(path: string): Promise<string | undefined>
  /** Atomic. Creates missing folders; only the owner may read the file. */
  write(path: string, text: string): Promise<void>
  /**
   * Deletes the contents of a folder, but not the folder. Does nothing if it does not exist. Rejects without changes if
   * a file system is mounted in it.
   */
  empty(folder: string): Promise<void>
  makeFolder(path: string): Promise<void>
  /** Deletes a file or an empty folder, if it exists. */
  remove(path: string): Promise<void>
  /** Replaces another file. */
  move(from: string, to: string): Promise<void>
  /** Downloads a body to a file. */
  download(url: string, path: string, timeoutMs: number): Promise<void>
  /** SHA-256 of the content, in hex. */
  sha256(path: string): Promise<string>
  /** The subject of the certificate that signed a program; undefined if it is not trusted. */
  signer(path: string): Promise<string | undefined>
}

export interface Launch {
  readonly name: ProcessName
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** The file for error output; discarded without one. */
  readonly errorsTo?: string | undefined
}

export interface HostProcesses {
  /** All living processes, regardless of who started them. */
  find(name: ProcessName): Promise<readonly number[]>
  /** The new process; it may still end soon. */
  launch(launch: Launch): Promise<number>
  isAlive(pid: number): Promise<boolean>
  /** Kills all processes with that name and waits for them. There may be none. */
  kill(name: ProcessName): Promise<void>
  /** Runs a program and returns its output. Rejects if it fails. */
  output(program: string, args: readonly string[], options?: OutputOptions): Promise<string>
}

export interface OutputOptions {
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>
  /** The contents of standard input. */
  readonly input?: string
}

/** Persistent variables: read from the process first, then from the machine; written to both. */
export interface HostEnvironment {
  get(name: string): Promise<string | undefined>
  /** Without the inherited environment of this process. */
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
  /** The adapter of the default route. */
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
  /** Lasts until the next boot. Rejects if the route exists. */
  addRoute(route: Route): Promise<void>
  /** The pod networks. */
  readonly pods: PodNetworks
  /** The local proxy to the API servers; its connections break when the network below it changes. */
  restartProxy(): Promise<void>
}

export interface PodNetwork {
  readonly id: string
  readonly name: string
  /** In lower case: `overlay`, `l2bridge`; on Linux `vxlan`, `host-gw`. */
  readonly type: string
  /** The range of its first subnet. */
  readonly prefix?: string | undefined
}

export interface PodNetworks {
  list(): Promise<readonly PodNetwork[]>
  remove(id: string): Promise<void>
  /** Removes leftover Service policies of an earlier kube-proxy. */
  removeServicePolicies(): Promise<void>
}

export interface HostWeb {
  /** The body of a successful response; rejects otherwise. */
  get(url: string, headers: Readonly<Record<string, string>>, timeoutMs: number): Promise<string>
}
