/** Keeps one connection to each machine of a cluster, opened on first use and reopened after a failure. */
import { type Machine, MachineLost } from '../machine.ts'

/** A connection to a machine, by SSH or otherwise. */
export interface MachineConnection {
  /** Undefined: the program is not installed and must not be uploaded. */
  readonly machine?: Machine
  /** The path of our program on the machine. */
  readonly program: string
  close(): Promise<void>
}

/** Opens a connection to the machine of this name. `installs`: a missing program is uploaded. Rejects with MachineLost. */
export type Connect = (name: string, installs: boolean) => Promise<MachineConnection>

export class Connections implements AsyncDisposable {
  readonly #connect: Connect
  readonly #open = new Map<string, Promise<MachineConnection>>()

  readonly #onCall: (machine: string, call: string) => void

  /** `onCall` is called before every call to a machine. */
  constructor(connect: Connect, onCall: (machine: string, call: string) => void = () => undefined) {
    this.#connect = connect
    this.#onCall = onCall
  }

  /** Undefined: our program is not installed there. */
  async reach(name: string): Promise<Machine | undefined> {
    return (await this.#connected(name, false)).machine && this.#kept(name)
  }

  /** Uploads our program if it is missing. */
  async machine(name: string): Promise<Machine> {
    const connected = await this.#connected(name, true)
    if (connected.machine === undefined) throw new MachineLost(`${name}: the program is not installed`)
    return this.#kept(name)
  }

  /** The path of our program on the machine. */
  async program(name: string): Promise<string> {
    return (await this.#connected(name, false)).program
  }

  #connected(name: string, installs: boolean): Promise<MachineConnection> {
    const known = this.#open.get(name)
    const connecting =
      known === undefined
        ? this.#connect(name, installs)
        : known.then(async (connected) => {
            if (connected.machine !== undefined || !installs) return connected
            await connected.close()
            return this.#connect(name, true)
          })
    this.#open.set(name, connecting)
    connecting.catch(() => this.#forget(name, connecting))
    return connecting
  }

  #forget(name: string, connecting: Promise<MachineConnection>): void {
    if (this.#open.get(name) === connecting) this.#open.delete(name)
  }

  /** Calls use the current connection; a lost one is dropped, and the next call opens another. */
  async #kept(name: string): Promise<Machine> {
    const connecting = this.#open.get(name)
    const { machine } = (await connecting) ?? {}
    if (connecting === undefined || machine === undefined)
      throw new MachineLost(`${name}: the program is not installed`)
    const calls = Object.entries(machine).map(([call, task]) => [
      call,
      async (ask: never, signal?: AbortSignal) => {
        this.#onCall(name, call)
        try {
          return await (task as (ask: never, signal?: AbortSignal) => Promise<object>)(ask, signal)
        } catch (error) {
          if (error instanceof MachineLost) this.#forget(name, connecting)
          throw error
        }
      },
    ])
    return Object.fromEntries(calls) as Machine
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const open = await Promise.allSettled(this.#open.values())
    this.#open.clear()
    await Promise.all(open.flatMap((each) => (each.status === 'fulfilled' ? [each.value.close()] : [])))
  }
}
