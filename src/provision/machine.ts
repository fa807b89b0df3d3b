/**
 * A machine as the builder sees it: all that may be asked of one, as data. What does it here, over SSH and in memory are three
 * implementations of this one interface. Every call takes one object and may be repeated: whoever lost the answer asks again.
 */

/** What a machine is, as far as a cluster cares. */
export interface MachineFacts {
  readonly hostname: string
  /** Of /etc/os-release: `debian 12`. */
  readonly system: string
  readonly kernel: string
  /** As Node calls it: `x64`, `arm64`. */
  readonly architecture: string
  readonly cgroupVersion: 1 | 2
  readonly processors: number
  readonly memoryBytes: number
  readonly swapBytes: number
  /** Of the file system that /var/lib is on. */
  readonly freeBytes: number
  readonly hasSystemd: boolean
  /** Milliseconds since the Unix epoch when it was asked. */
  readonly now: number
  readonly addresses: readonly string[]
  /** Which of the programs that nodes need are there: `containerd`, `runc`, `nft`, `ip`, `etcd` … */
  readonly programs: readonly string[]
}

export interface FileState {
  /** SHA-256 of the content, in hexadecimal digits; empty for a folder. */
  readonly digest: string
  readonly mode: number
  readonly uid: number
  readonly gid: number
}

/** A program that is to run for as long as the machine does, and again when it ends. */
export interface ServiceSpec {
  readonly name: string
  readonly description: string
  /** The program, by its whole path, and its arguments. */
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** A file of `NAME=value` lines, which may be missing. It is for what only matters at the first start: changing it changes no service. */
  readonly envFile?: string
  /** Services that start before it. */
  readonly after?: readonly string[]
  /** For SIGTERM; then it is killed. */
  readonly stopSeconds?: number
  /** Whether its children are to outlive it: containers do. */
  readonly leavesChildren?: boolean
  /** Says what the files are that it reads only when it starts: one that changes makes another service of it. */
  readonly reads?: string
}

export interface ServiceState {
  /** `serviceDigest` of what it was installed as; something else when somebody has changed it by hand. */
  readonly digest: string
  readonly isRunning: boolean
}

/** Undefined stands for what is not there. */
export interface Seen {
  readonly files: Readonly<Record<string, FileState | undefined>>
  readonly services: Readonly<Record<string, ServiceState | undefined>>
}

export interface Outcome {
  /** 128 and more: ended by a signal, or by force when it took too long. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface HttpAnswer {
  /** 0: no answer; `text` says why. */
  readonly status: number
  readonly text: string
}

export interface RunAsk {
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** For its standard input. */
  readonly content?: Buffer
  readonly timeoutMs: number
}

/** Paths are whole, and of the machine. A call rejects with MachineError for what the machine cannot do. */
export interface Machine {
  facts(ask: object, signal?: AbortSignal): Promise<MachineFacts>
  look(ask: { readonly files: readonly string[]; readonly services: readonly string[] }): Promise<Seen>
  /** The last `last` bytes of a file, or `length` from `at` on, or all of it. No content: there is no such file. */
  read(ask: {
    readonly path: string
    readonly last?: number
    readonly part?: { readonly at: number; readonly length: number }
  }): Promise<{ readonly content?: Buffer }>
  /** Whole or not at all. Folders that are missing are made. */
  write(ask: {
    readonly path: string
    readonly mode: number
    readonly uid?: number
    readonly gid?: number
    readonly content: Buffer
  }): Promise<object>
  /** With all that is below them, mounts excepted: those are taken away first. */
  remove(ask: { readonly paths: readonly string[] }): Promise<object>
  /** Says that what is not there yet, and will be, is the cluster's: `restore` takes it away again. `/a/*`: all that comes into `/a`. */
  claim(ask: { readonly paths: readonly string[] }): Promise<object>
  /** Takes away all that `write`, `claim` and the rest have made, and the memory of it. */
  restore(ask: object): Promise<object>
  /** How much of a file has come, and whether all of it has. */
  uploadAt(ask: Upload): Promise<{ readonly at: number; readonly isDone: boolean }>
  uploadPart(ask: Upload & { readonly at: number; readonly content: Buffer }): Promise<object>
  /** Checks the digest and gives the file its name. */
  uploadEnd(ask: Upload & { readonly mode: number }): Promise<object>
  /** Waits for a program to end. */
  run(ask: RunAsk, signal?: AbortSignal): Promise<Outcome>
  /** Makes the service what `service` says, and starts it again. */
  serve(ask: { readonly service: ServiceSpec }): Promise<object>
  /** Stops it, and forgets it. */
  retire(ask: { readonly name: string }): Promise<object>
  /** What it said last. */
  tail(ask: { readonly name: string; readonly lines: number }): Promise<{ readonly text: string }>
  /** Whether somebody accepts connections there. Empty: yes; else why not. */
  dial(ask: { readonly host: string; readonly port: number; readonly timeoutMs: number }): Promise<{
    readonly problem: string
  }>
  /** Accepts connections until `unlisten`, or until whoever asked has gone. Ports that are in use already are left alone. */
  listen(ask: { readonly ports: readonly number[] }): Promise<{ readonly taken: readonly number[] }>
  unlisten(ask: object): Promise<object>
  /** Asks a server that this machine reaches, with certificates that lie in files of this machine. */
  http(ask: {
    readonly method?: string
    readonly url: string
    readonly content?: Buffer
    readonly authority?: string
    readonly certificate?: string
    readonly key?: string
    /** Trusts whoever answers. */
    readonly insecure?: boolean
    readonly timeoutMs: number
  }): Promise<HttpAnswer>
}

export interface Upload {
  readonly path: string
  /** In hexadecimal digits, of the whole. */
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

/** A name for each call, for whoever passes calls on. */
export const MACHINE_CALLS: readonly MachineCall[] = Object.keys(CALLS) as MachineCall[]

/** The machine has answered that it cannot. */
export class MachineError extends Error {
  override readonly name = 'MachineError'
}

/** The machine does not answer any more: nobody knows what has become of the last call. */
export class MachineLost extends Error {
  override readonly name = 'MachineLost'
}
