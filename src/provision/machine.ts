/**
 * The interface through which `hyperkube build` uses a machine. It has three implementations: local, over SSH and in
 * memory. Every call takes one object and is idempotent, so that a caller can repeat it after a lost answer.
 */

/** Facts about a machine. */
export interface MachineFacts {
  readonly hostname: string
  /** From /etc/os-release: `debian 12`. */
  readonly system: string
  readonly kernel: string
  /** Node's name: `x64`, `arm64`. */
  readonly architecture: string
  readonly cgroupVersion: 1 | 2
  readonly processors: number
  readonly memoryBytes: number
  readonly swapBytes: number
  /** Free space of the file system with /var/lib. */
  readonly freeBytes: number
  readonly hasSystemd: boolean
  /** Milliseconds since the Unix epoch, at the time of the call. */
  readonly now: number
  readonly addresses: readonly string[]
  /** The installed programs that nodes need: `containerd`, `runc`, `nft`, `ip`, `etcd` … */
  readonly programs: readonly string[]
}

export interface FileState {
  /** SHA-256 of the content in hex; empty for a folder. */
  readonly digest: string
  readonly mode: number
  readonly uid: number
  readonly gid: number
}

/** A service that starts with the machine and restarts when it ends. */
export interface ServiceSpec {
  readonly name: string
  readonly description: string
  /** The absolute path of the program, and its arguments. */
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /**
   * An optional file of `NAME=value` lines, for values that matter only at the first start. Its changes do not restart
   * the service.
   */
  readonly envFile?: string
  /** Services that start before it. */
  readonly after?: readonly string[]
  /** The time after SIGTERM before SIGKILL. */
  readonly stopSeconds?: number
  /** True if its children outlive it, as containers do. */
  readonly leavesChildren?: boolean
  /** The digest of files that it reads only at its start: a change restarts it. */
  readonly reads?: string
}

export interface ServiceState {
  /** The `serviceDigest` of its installation; differs if the unit was changed by hand. */
  readonly digest: string
  readonly isRunning: boolean
}

/** Undefined means absent. */
export interface MachineState {
  readonly files: Readonly<Record<string, FileState | undefined>>
  readonly services: Readonly<Record<string, ServiceState | undefined>>
}

export interface Outcome {
  /** 128 and more: ended by a signal, or killed after the timeout. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface HttpAnswer {
  /** 0: no answer; `text` has the reason. */
  readonly status: number
  readonly text: string
}

export interface RunAsk {
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** The standard input. */
  readonly content?: Buffer
  readonly timeoutMs: number
}

/** Paths are absolute and on the machine. Calls reject with MachineError if the machine fails. */
export interface Machine {
  facts(ask: object, signal?: AbortSignal): Promise<MachineFacts>
  look(ask: { readonly files: readonly string[]; readonly services: readonly string[] }): Promise<MachineState>
  /** The last `last` bytes of a file, or `length` from `at` on, or all of it. No content if the file does not exist. */
  read(ask: {
    readonly path: string
    readonly last?: number
    readonly part?: { readonly at: number; readonly length: number }
  }): Promise<{ readonly content?: Buffer }>
  /** Atomic. Creates missing folders. */
  write(ask: {
    readonly path: string
    readonly mode: number
    readonly uid?: number
    readonly gid?: number
    readonly content: Buffer
  }): Promise<object>
  /** Deletes recursively; mounts below are unmounted first. */
  remove(ask: { readonly paths: readonly string[] }): Promise<object>
  /**
   * Marks paths that do not exist yet as belonging to the cluster: `restore` deletes them. `/a/*`: everything created
   * in `/a`.
   */
  claim(ask: { readonly paths: readonly string[] }): Promise<object>
  /** Removes everything that `write`, `claim` and other calls have created, and the journal. */
  restore(ask: object): Promise<object>
  /** The received size of a file, and whether it is complete. */
  uploadAt(ask: Upload): Promise<{ readonly at: number; readonly isDone: boolean }>
  uploadPart(ask: Upload & { readonly at: number; readonly content: Buffer }): Promise<object>
  /** Verifies the digest and renames the file. */
  uploadEnd(ask: Upload & { readonly mode: number }): Promise<object>
  /** Runs a program and waits for it. */
  run(ask: RunAsk, signal?: AbortSignal): Promise<Outcome>
  /** Installs or updates the service and restarts it. */
  serve(ask: { readonly service: ServiceSpec }): Promise<object>
  /** Stops the service and removes it. */
  retire(ask: { readonly name: string }): Promise<object>
  /** Its last log lines. */
  tail(ask: { readonly name: string; readonly lines: number }): Promise<{ readonly text: string }>
  /** Checks whether a port accepts connections. Empty: yes; otherwise the reason. */
  dial(ask: { readonly host: string; readonly port: number; readonly timeoutMs: number }): Promise<{
    readonly problem: string
  }>
  /** Accepts connections until `unlisten`, or until the caller disconnects. Ports in use are skipped. */
  listen(ask: { readonly ports: readonly number[] }): Promise<{ readonly taken: readonly number[] }>
  unlisten(ask: object): Promise<object>
  /** Sends an HTTP request from this machine, with certificates in its files. */
  http(ask: {
    readonly method?: string
    readonly url: string
    readonly content?: Buffer
    readonly authority?: string
    readonly certificate?: string
    readonly key?: string
    /** Skips certificate verification. */
    readonly insecure?: boolean
    readonly timeoutMs: number
  }): Promise<HttpAnswer>
}

export interface Upload {
  readonly path: string
  /** In hex, of the whole file. */
  readonly sha256: string
}

export type MachineCall = keyof Machine

const CALLS: Readonly<Record<MachineCall, true>> = {
  facts: true,
  look: true,
  read: true,
  write: true,
  remove: true,
  claim: true,
  restore: true,
  uploadAt: true,
  uploadPart: true,
  uploadEnd: true,
  run: true,
  serve: true,
  retire: true,
  tail: true,
  dial: true,
  listen: true,
  unlisten: true,
  http: true,
}

/** The names of all calls, for forwarding. */
export const MACHINE_CALLS: readonly MachineCall[] = Object.keys(CALLS) as MachineCall[]

/** The machine reported an error. */
export class MachineError extends Error {
  override readonly name = 'MachineError'
}

/** The connection is lost: the state of the last call is unknown. */
export class MachineLost extends Error {
  override readonly name = 'MachineLost'
}
