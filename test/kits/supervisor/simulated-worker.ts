/**
 * A simulated Windows machine for set-up tests: services whose programs act, a firewall, Docker, archives, and a
 * cluster for its kubelet. It can be interrupted before any change.
 */
import type { ClusterView } from '#supervisor/windows/setup/context.ts'
import type { ServicePlan, ServiceState, WindowsHost } from '#supervisor/windows/windows-host.ts'

import { SimulatedWindows, type SimulatedWindowsOptions } from './simulated-windows.ts'

export interface SimulatedWorkerOptions extends SimulatedWindowsOptions {
  readonly isElevated?: boolean
  /** Services that exist before a set-up. */
  readonly services?: Readonly<Record<string, ServiceState>>
  /** The delay of node registration after the start of kubelet; Infinity means never. */
  readonly registersAfterMs?: number
  /** The number of start commands that a service needs. */
  readonly startsAfter?: Readonly<Record<string, number>>
}

interface SimulatedService {
  state: ServiceState
  readonly plan: ServicePlan | undefined
}

export class SimulatedWorker extends SimulatedWindows {
  readonly services: Map<string, SimulatedService> = new Map()
  readonly rules: Set<string> = new Set()
  readonly images: Map<string, string> = new Map()
  readonly nodes: Set<string> = new Set()
  /** ServiceAccounts of the cluster. */
  readonly accounts: Set<string> = new Set()
  containers: string[] = []
  /** The number of changes before the machine is interrupted. */
  changesLeft: number = Infinity
  changesMade = 0
  readonly #options: SimulatedWorkerOptions
  readonly #startCommands = new Map<string, number>()
  /** Effects of the machine's programs, not of the set-up. */
  #isByOthers = false

  constructor(options: SimulatedWorkerOptions) {
    super({ ...options, outputs: (program, args) => this.#output(program, args) })
    this.#options = options
    const services: Readonly<Record<string, ServiceState>> = options.services ?? { docker: 'running' }
    for (const [name, state] of Object.entries(services)) this.services.set(name, { state, plan: undefined })
  }

  override note(text: string): void {
    if (/^run docker (?:image|ps)/.test(text)) return
    const isChange = !text.startsWith('say ') && !this.#isByOthers
    if (isChange && --this.changesLeft < 0) throw new Error('The machine was interrupted')
    if (isChange) this.changesMade++
    super.note(text)
  }

  get worker(): WindowsHost {
    return {
      ...this.host,
      machineName: 'win-1',
      isElevated: async () => this.#options.isElevated ?? true,
      hns: this.hns,
      firewall: {
        isAllowed: async (name) => this.rules.has(name),
        allow: async ({ name }) => {
          this.note(`firewall allow ${name}`)
          this.rules.add(name)
        },
        remove: async (name) => {
          if (!this.rules.has(name)) return
          this.note(`firewall remove ${name}`)
          this.rules.delete(name)
        },
      },
      services: {
        state: async (name) => this.services.get(name)?.state,
        install: async (plan) => {
          this.note(`service install ${plan.name}`)
          this.services.set(plan.name, { state: 'stopped', plan })
          this.files.set(plan.wrapper, 'wrapper')
        },
        start: async (name) => this.#start(name),
        stop: async (name) => {
          this.note(`service stop ${name}`)
          this.#of(name).state = 'stopped'
        },
        remove: async (name) => {
          if (!this.services.has(name)) return
          if (this.#of(name).state === 'running') throw new Error(`${name} is running`)
          this.note(`service remove ${name}`)
          this.services.delete(name)
        },
      },
    }
  }

  get cluster(): ClusterView {
    return {
      dnsServiceIp: async () => '10.10.0.10',
      isNodeThere: async (name) => this.nodes.has(name),
      deleteNode: async (name) => {
        if (!this.nodes.has(name)) return
        this.note(`node delete ${name}`)
        this.nodes.delete(name)
      },
      endpoint: async () => ({ server: 'https://10.1.2.1:6443', certificateAuthority: 'SERVER CA' }),
      clientAuthority: async () => 'CLIENT CA',
      joinToken: async () => 'abcdef.0123456789abcdef',
      componentToken: async (component, node) => {
        const name = `${component}-${node}`
        if (!this.accounts.has(name)) this.note(`account create ${name}`)
        this.accounts.add(name)
        return `token of ${name}`
      },
      revoke: async (component, node) => {
        const name = `${component}-${node}`
        if (!this.accounts.has(name)) return
        this.note(`account delete ${name}`)
        this.accounts.delete(name)
      },
    }
  }

  #of(name: string): { state: ServiceState } {
    const found = this.services.get(name)
    if (found === undefined) throw new Error(`There is no service ${name}`)
    return found
  }

  #start(name: string): void {
    const service = this.#of(name)
    const count = (this.#startCommands.get(name) ?? 0) + 1
    this.#startCommands.set(name, count)
    this.note(`service start ${name}`)
    if (count < (this.#options.startsAfter?.[name] ?? 1)) return
    service.state = 'running'
    const { registersAfterMs = 3000, networkAfterMs = 3000 } = this.#options
    if (name === 'Kubelet' && registersAfterMs < Infinity)
      this.clock.after(registersAfterMs, () => this.#ifRunning(name, () => this.#register()))
    if (name === 'FlannelD' && networkAfterMs < Infinity)
      this.clock.after(networkAfterMs, () => this.#ifRunning(name, () => this.makeFlannelNetwork()))
  }

  #register(): void {
    const flags = this.services.get('Kubelet')?.plan?.args ?? []
    const of = (flag: string): string => flags.find((one) => one.startsWith(`--${flag}=`))?.slice(flag.length + 3) ?? ''
    if (!this.files.has(of('bootstrap-kubeconfig'))) return
    this.nodes.add('win-1')
    this.files.set(of('kubeconfig'), 'system:node:win-1')
    this.files.set(`${of('cert-dir')}\\kubelet-client-current.pem`, 'pem')
  }

  #ifRunning(name: string, work: () => void): void {
    if (this.services.get(name)?.state !== 'running') return
    this.#isByOthers = true
    work()
    this.#isByOthers = false
  }

  #output(program: string, args: readonly string[]): string | undefined {
    if (program === 'docker') return this.#docker(args)
    if (program === 'icacls.exe') return ''
    if (program === 'tar.exe') return this.#unpack(args)
    if (program.endsWith('host-local.exe')) {
      if (!this.files.has(program)) return undefined
      this.files.set('C:\\var\\lib\\cni\\networks\\vxlan0\\10.244.0.2', 'dummy')
      return JSON.stringify({ ips: [{ version: '4', address: '10.244.0.2/24' }] })
    }
    return undefined
  }

  #docker([command = '', ...args]: readonly string[]): string | undefined {
    const last = args.at(-1) ?? ''
    if (command === 'image') return this.images.get(last)
    if (command === 'pull') this.images.set(last, `sha256:${last}`)
    if (command === 'tag') this.images.set(last, this.images.get(args[0] ?? '') ?? '')
    if (command === 'build') this.images.set(args[1] ?? '', 'sha256:pause')
    if (command === 'ps') return this.containers.join('\n')
    if (command === 'rm') this.containers = []
    return ''
  }

  #unpack(args: readonly string[]): string {
    const [, archive = '', , into = ''] = args
    const names = archive.includes('kubernetes')
      ? ['kubelet.exe', 'kube-proxy.exe', 'kubectl.exe'].map((name) => `kubernetes\\node\\bin\\${name}`)
      : ['flannel.exe', 'host-local.exe', 'win-overlay.exe', 'win-bridge.exe']
    for (const name of names) this.files.set(`${into}\\${name}`, name)
    return ''
  }
}
