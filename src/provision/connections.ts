/** One connection for each machine of a cluster, made when it is first needed and made again when it has broken. */
import { type Machine, MachineLost } from './machine.ts'
import type { Connected } from './ssh/connect.ts'

export type Connect = (name: string, installs: boolean) => Promise<Connected>

export class Connections implements AsyncDisposable {
  readonly #connect: Connect
  readonly #open = new Map<string, Promise<Connected>>()

  readonly #onCall: (machine: string, call: string) => void

  /** `onCall` hears of every call to a machine before it is made. */
  constructor(connect: Connect, onCall: (machine: string, call: string) => void = () => undefined) {
    this.#connect = connect
    this.#onCall = onCall
  }

  /** Undefined: our program is not there, and is not brought. */
  async reach(name: string): Promise<Machine | undefined> {
    return (await this.#connected(name, false)).machine && this.#kept(name)
  }

  /** Brings our program if it is not there. */
  async machine(name: string): Promise<Machine> {
    const connected = await this.#connected(name, true)
    if (connected.machine === undefined) throw new MachineLost(`${name}: the program is not there`)
    return this.#kept(name)
  }

  /** Where our program is on the machine, or would be. */
  async program(name: string): Promise<string> {
    return (await this.#connected(name, false)).program
  }

  #connected(name: string, installs: boolean): Promise<Connected> {
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

  #forget(name: string, connecting: Promise<Connected>): void {
    if (this.#open.get(name) === connecting) this.#open.delete(name)
  }

  /** Calls go to the connection of the moment; one that was lost is forgotten, so that the next call makes another. */
  async #kept(name: string): Promise<Machine> {
    const connecting = this.#open.get(name)
    const { machine } = (await connecting) ?? {}
    if (connecting === undefined || machine === undefined) throw new MachineLost(`${name}: the program is not there`)
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
