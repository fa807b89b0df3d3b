/**
 * Reads and changes links, addresses, routes and neighbours of a network namespace, through `ip` and `bridge`. No shell
 * is involved.
 */
import { execFile } from 'node:child_process'

/** As `ip -json -details address show` has it; what is not named here is left alone. */
export interface LinkState {
  readonly ifindex: number
  readonly ifname: string
  readonly flags: readonly string[]
  readonly mtu: number
  /** The bridge that it is a port of. */
  readonly master?: string
  /** MAC. */
  readonly address?: string
  readonly linkinfo?: {
    readonly info_kind?: string
    readonly info_data?: Readonly<Record<string, unknown>>
    /** Of a port of a bridge. */
    readonly info_slave_data?: { readonly hairpin?: boolean }
  }
  readonly addr_info: readonly AddressState[]
}

export interface AddressState {
  readonly family: 'inet' | 'inet6'
  readonly local: string
  readonly prefixlen: number
  readonly scope: string
}

export interface RouteState {
  /** `default`, an address, or a range. */
  readonly dst: string
  readonly gateway?: string
  readonly dev?: string
  /** The origin of the route: a name or a number. */
  readonly protocol?: string
  readonly flags?: readonly string[]
}

export interface NeighbourState {
  readonly dst: string
  readonly lladdr?: string
  readonly state?: readonly string[]
}

export interface ForwardingState {
  readonly mac: string
  readonly dst?: string
}

/** Each is one command, without the name of the program. */
export type Commands = readonly (readonly string[])[]

export interface IpRoute {
  /** All of them. */
  links(): Promise<readonly LinkState[]>
  /** Undefined: there is none of this name. */
  link(name: string): Promise<LinkState | undefined>
  routes(family: 4 | 6, dev?: string): Promise<readonly RouteState[]>
  neighbours(dev: string): Promise<readonly NeighbourState[]>
  forwarding(dev: string): Promise<readonly ForwardingState[]>
  /** One after another, and all of them even when some fail; throws what failed then. */
  ip(commands: Commands): Promise<void>
  bridge(commands: Commands): Promise<void>
}

export class IpRouteError extends Error {}

/** Of the namespace of this process, or of the one with this name (`ip netns`). */
export function createIpRoute(netns?: string): IpRoute {
  const inside = netns === undefined ? [] : ['-netns', netns]
  const read = async <T extends object>(program: string, args: readonly string[]): Promise<readonly T[]> => {
    const text = await run(program, ['-json', ...inside, ...args])
    const all = text.trim() === '' ? [] : (JSON.parse(text) as readonly T[])
    // An object that another filter omitted is empty.
    return all.filter((one) => Object.keys(one).length > 0)
  }
  const batch = async (program: string, commands: Commands): Promise<void> => {
    if (commands.length > 0) await run(program, [...inside, '-force', '-batch', '-'], lines(commands))
  }
  return {
    links: () => read<LinkState>('ip', ['-details', 'address', 'show']),
    link: async (name) => {
      try {
        return (await read<LinkState>('ip', ['-details', 'address', 'show', 'dev', name]))[0]
      } catch (error) {
        if (/does not exist|Cannot find device/.test((error as Error).message)) return undefined
        throw error
      }
    },
    routes: (family, dev) =>
      read<RouteState>('ip', [`-${family}`, 'route', 'show', ...(dev === undefined ? [] : ['dev', dev])]),
    neighbours: (dev) => read<NeighbourState>('ip', ['neigh', 'show', 'dev', dev]),
    forwarding: (dev) => read<ForwardingState>('bridge', ['fdb', 'show', 'dev', dev]),
    ip: (commands) => batch('ip', commands),
    bridge: (commands) => batch('bridge', commands),
  }
}

/** A word with a blank in it would be two. */
function lines(commands: Commands): string {
  for (const word of commands.flat())
    if (!/^[^\s\\'"#]+$/.test(word)) throw new IpRouteError(`"${word}" is no word of a command`)
  return commands.map((words) => `${words.join(' ')}\n`).join('')
}

const MAX_BYTES = 64 << 20

function run(program: string, args: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, { maxBuffer: MAX_BYTES }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new IpRouteError(`${program} ${args.join(' ')}: ${stderr.trim() || error.message}`, { cause: error }))
    })
    // A process that has already ended reads nothing and reports its error.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input)
  })
}
