/**
 * A simulated Windows machine on a virtual clock: files, processes, adapters, routes, HNS. Its first pod network
 * creates a virtual switch, which cuts connections and drops metadata routes; running programs cannot be replaced.
 */
import { createHash } from 'node:crypto'

import type { Clock } from '#lib/clock.ts'
import type { HnsCall, HnsNetwork } from '#lib/hns/hns.ts'
import type { Adapter, Host, Launch, Route } from '#supervisor/host.ts'
import { windowsLayout } from '#supervisor/layout.ts'
import type { ProcessName } from '#supervisor/process-names.ts'
import { hnsPodNetworks } from '#supervisor/windows/hns.ts'

export interface SimulatedWindowsOptions {
  readonly clock: Clock
  readonly adapters?: readonly Adapter[]
  /** Path → text. */
  readonly files?: Readonly<Record<string, string>>
  readonly networks?: readonly HnsNetwork[]
  readonly policyLists?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** HTTP bodies of the cloud's metadata by URL; each needs a route. */
  readonly metadata?: Readonly<Record<string, string>>
  /** The lifetimes of successive launches; the last applies to all later ones. Infinite by default. */
  readonly livesMs?: Readonly<Partial<Record<ProcessName, readonly number[]>>>
  /** The output of other programs by arguments; unknown ones fail. */
  readonly outputs?: (program: string, args: readonly string[]) => string | undefined
  /** The time until flanneld creates the network; Infinity means never. */
  readonly networkAfterMs?: number
  /** A network type that differs from flanneld's configuration. */
  readonly networkType?: string
  /** Called when a process has ended by itself. */
  readonly ended?: () => void
}

interface SimulatedProcess {
  readonly name: ProcessName
  readonly launch: Launch
  readonly dies: number
}

const PROGRAMS: Readonly<Record<string, string>> = {
  'C:\\etc\\kubernetes\\bin\\kubelet.exe': 'kubelet',
  'C:\\etc\\kubernetes\\bin\\kube-proxy.exe': 'kube-proxy',
  'C:\\etc\\cni\\bin\\flanneld.exe': 'flanneld',
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

const METADATA_PREFIX = '169.254.169.254/32'

export class SimulatedWindows {
  readonly clock: Clock
  readonly files: Map<string, string>
  readonly networks: HnsNetwork[]
  readonly policyLists: Set<string>
  readonly routes: Route[] = []
  readonly machineEnvironment: Map<string, string>
  adapters: readonly Adapter[]
  /** HTTP bodies by URL; any other URL returns itself, with a valid checksum beside it. */
  readonly downloads: Map<string, string> = new Map()
  /** Signers by file content. */
  readonly signers: Map<string, string> = new Map()
  /** The actions, each with its time in seconds. */
  readonly journal: string[] = []
  /** The number of launches while another process of the same kind was alive. */
  doubles = 0
  /** True if connections through the proxy to the API servers work. */
  isProxyGood = true
  readonly #options: SimulatedWindowsOptions
  readonly #startedMs: number
  readonly #living = new Map<number, SimulatedProcess>()
  readonly #launches = new Map<ProcessName, number>()
  #nextPid = 1000
  #nextId = 1

  constructor(options: SimulatedWindowsOptions) {
    this.#options = options
    this.clock = options.clock
    this.#startedMs = options.clock.elapsed()
    this.files = new Map(Object.entries({ ...PROGRAMS, ...options.files }))
    this.networks = [...(options.networks ?? [])]
    this.policyLists = new Set(options.policyLists)
    this.machineEnvironment = new Map(Object.entries(options.environment ?? {}))
    this.adapters = options.adapters ?? [
      { name: 'Ethernet', index: 4, address: '10.1.2.3', prefixLength: 24, gateway: '10.1.2.1' },
    ]
    if (options.metadata !== undefined) this.#addMetadataRoute()
  }

  get host(): Host {
    return {
      system: 'windows',
      layout: windowsLayout,
      clock: this.clock,
      say: (text) => this.note(`say ${text}`),
      files: this.#hostFiles(),
      processes: this.#hostProcesses(),
      environment: {
        get: async (name) => this.machineEnvironment.get(name),
        ofMachine: async (name) => this.machineEnvironment.get(name),
        set: async (name, value) => {
          this.note(`variable ${name}`)
          this.machineEnvironment.set(name, value)
        },
        remove: async (name) => {
          this.note(`variable ${name} gone`)
          this.machineEnvironment.delete(name)
        },
      },
      network: {
        adapters: async () => this.adapters,
        addRoute: async (route) => this.#addRoute(route),
        pods: hnsPodNetworks(this.hns),
        restartProxy: async () => {
          this.note('restart proxy')
          this.isProxyGood = true
        },
      },
      web: { get: async (url) => this.#metadata(url) },
    }
  }

  /** Kills processes without notification. */
  kill(...names: readonly ProcessName[]): void {
    for (const [pid, { name }] of this.#living) if (names.includes(name)) this.#living.delete(pid)
  }

  running(): { readonly name: ProcessName; readonly launch: Launch }[] {
    return [...this.#living.values()].filter(({ dies }) => dies > this.clock.elapsed())
  }

  readonly hns: HnsCall = async (method, path, body) => {
    const [, collection, id] = path.split('/')
    if (method === 'GET') return { Success: true, Output: this.#collection(collection) }
    if (method === 'POST') return { Success: true, Output: this.#create(body as Omit<HnsNetwork, 'ID'>) }
    this.note(`hns delete ${path}`)
    if (collection === 'policylists') this.policyLists.delete(id ?? '')
    const at = this.networks.findIndex(({ ID }) => ID === id)
    if (collection !== 'networks' || at >= 0)
      return { Success: true, Output: this.networks.splice(Math.max(at, 0), at < 0 ? 0 : 1) }
    return { Success: false, Error: `Element not found: ${path}` }
  }

  #collection(name: string | undefined): unknown {
    if (name === 'policylists') return [...this.policyLists].map((ID) => ({ ID }))
    return this.networks
  }

  /** The first network creates a switch and breaks connections of the adapter. */
  #create(network: Omit<HnsNetwork, 'ID'>): HnsNetwork {
    const made = { ...network, ID: `net-${this.#nextId++}` }
    const laysSwitch = ['Overlay', 'L2Bridge'].includes(network.Type) && !this.networks.some(isOnSwitch)
    this.networks.push(made)
    this.note(`hns network ${made.Name} ${made.Type}`)
    if (!laysSwitch) return made
    this.note('virtual switch: connections are cut, routes are gone')
    this.isProxyGood = false
    this.routes.length = 0
    this.adapters = this.adapters.map((adapter) =>
      adapter.name.startsWith('vEthernet')
        ? adapter
        : { ...adapter, name: `vEthernet (${adapter.name})`, index: adapter.index + 10 },
    )
    return made
  }

  #hostFiles(): Host['files'] {
    const within = (folder: string): string[] => [...this.files.keys()].filter((path) => path.startsWith(`${folder}\\`))
    return {
      exists: async (path) => this.files.has(path),
      read: async (path) => this.files.get(path),
      write: async (path, text) => {
        this.note(`write ${path}`)
        this.files.set(path, text)
      },
      empty: async (folder) => {
        const paths = within(folder)
        if (paths.length === 0) return
        for (const path of paths) {
          const user = this.running().find(({ name }) => name === PROGRAMS[path])
          if (user !== undefined) throw new Error(`${path} is in use`)
          this.files.delete(path)
        }
        this.note(`empty ${folder}`)
      },
      makeFolder: async () => undefined,
      remove: async (path) => {
        if (!this.files.has(path)) return
        this.note(`remove ${path}`)
        this.files.delete(path)
      },
      move: async (from, to) => {
        this.note(`move ${to}`)
        this.files.set(to, this.files.get(from) ?? '')
        this.files.delete(from)
      },
      download: async (url, path) => {
        this.note(`download ${url}`)
        const content = this.downloads.get(url)
        const isChecksum = url.endsWith('.sha256')
        this.files.set(path, content ?? (isChecksum ? `${sha256(url.slice(0, -'.sha256'.length))}  file\n` : url))
      },
      sha256: async (path) => sha256(this.files.get(path) ?? ''),
      signer: async (path) => this.signers.get(this.files.get(path) ?? ''),
    }
  }

  #hostProcesses(): Host['processes'] {
    const of = (wanted: ProcessName): number[] =>
      [...this.#living].flatMap(([pid, { name, dies }]) =>
        name === wanted && dies > this.clock.elapsed() ? [pid] : [],
      )
    return {
      find: async (name) => of(name),
      launch: async (launch) => this.#launch(launch),
      isAlive: async (pid) => (this.#living.get(pid)?.dies ?? 0) > this.clock.elapsed(),
      kill: async (name) => {
        this.note(`kill ${name}`)
        this.kill(name)
      },
      output: async (program, args) => {
        const text = this.#options.outputs?.(program, args)
        if (text === undefined) throw new Error(`${program} ${args.join(' ')} failed`)
        this.note(`run ${[program.split('\\').at(-1), ...args].slice(0, 4).join(' ')}`)
        return text
      },
    }
  }

  #launch(launch: Launch): number {
    const { name } = launch
    if (this.running().some((other) => other.name === name)) this.doubles++
    const count = this.#launches.get(name) ?? 0
    this.#launches.set(name, count + 1)
    const lives = this.#options.livesMs?.[name] ?? []
    const lifeMs = lives[Math.min(count, lives.length - 1)] ?? Infinity
    const pid = this.#nextPid++
    this.#living.set(pid, { name, launch, dies: this.clock.elapsed() + lifeMs })
    this.note(`launch ${name}${launch.errorsTo === undefined ? '' : ` 2> ${launch.errorsTo}`}`)
    const { networkAfterMs = 3000, ended } = this.#options
    if (lifeMs < Infinity && ended !== undefined) this.clock.after(lifeMs, ended)
    if (name === 'flanneld' && networkAfterMs < lifeMs)
      this.clock.after(networkAfterMs, () => {
        if (this.#living.has(pid)) this.makeFlannelNetwork()
      })
    return pid
  }

  /** Simulates flanneld with its configuration files. */
  protected makeFlannelNetwork(): void {
    const text = this.files.get('C:\\etc\\kube-flannel\\net-conf.json')
    if (text === undefined) return
    const { Network, Backend } = JSON.parse(text) as { Network: string; Backend: { Name: string; Type: string } }
    if (this.networks.some(({ Name }) => Name === Backend.Name)) return
    const Type = this.#options.networkType ?? (Backend.Type === 'vxlan' ? 'Overlay' : 'L2Bridge')
    this.#create({ Name: Backend.Name, Type, Subnets: [{ AddressPrefix: Network }] })
  }

  #addRoute(route: Route): void {
    if (this.routes.some(({ prefix }) => prefix === route.prefix))
      throw new Error(`Instance already exists: ${route.prefix}`)
    if (!this.adapters.some(({ index }) => index === route.interfaceIndex)) throw new Error('No such interface')
    this.note(`route ${route.prefix}`)
    this.routes.push(route)
  }

  #addMetadataRoute(): void {
    const [adapter] = this.adapters
    if (adapter?.gateway === undefined) return
    this.routes.push({ prefix: METADATA_PREFIX, interfaceIndex: adapter.index, gateway: adapter.gateway, metric: 1 })
  }

  #metadata(url: string): string {
    const isReachable = this.routes.some(({ prefix }) => prefix === METADATA_PREFIX)
    const body = this.#options.metadata?.[url]
    if (!isReachable || body === undefined) throw new Error(`No route to ${url}`)
    return body
  }

  note(text: string): void {
    this.journal.push(`${(this.clock.elapsed() - this.#startedMs) / 1000} ${text}`)
  }
}

function isOnSwitch({ Type }: HnsNetwork): boolean {
  return Type === 'Overlay' || Type === 'L2Bridge'
}
