/** Simulates machines, API and files in memory for tests of whole `hyperkube build` runs with a real cluster file. */
import { Connections } from './apply/connections.ts'
import type { OpenApi, OpenMachines, OwnFiles } from './builder/session-options.ts'
import type { SimulatedSite } from './simulated-site.fixture.ts'

const PROGRAM = '/opt/hyperkube/programs/0123456789abcdef'

export interface SimulatedBuild {
  readonly openMachines: OpenMachines
  readonly openApi: OpenApi
  readonly own: OwnFiles
}

/** Machines have the names `1`, `2` … and the addresses 10.0.0.1, 10.0.0.2 … */
export function simulatedBuild(site: SimulatedSite): SimulatedBuild {
  const tools = site.site()
  return {
    openMachines: async (_targets, closing) => {
      const connections = new Connections(async (name, installs) => {
        const machine = installs ? await tools.machine(name) : await tools.reach(name)
        return { program: PROGRAM, close: () => Promise.resolve(), ...(machine !== undefined && { machine }) }
      })
      closing.use(connections)
      return connections
    },
    openApi: () => ({ api: tools.api, reopen: () => undefined }),
    own: { includes: new Map(), archives: [] },
  }
}

/** The API fails until the session has written a kubeconfig, as in a folder without one. */
export function withoutKubeconfig(open: OpenApi): OpenApi {
  return (...options) => {
    const opened = open(...options)
    let isWritten = false
    const guarded = Object.entries(opened.api).map(([name, call]) => [
      name,
      (...args: readonly never[]) =>
        isWritten
          ? (call as (...all: readonly never[]) => Promise<unknown>)(...args)
          : Promise.reject(new Error('There is no kubeconfig')),
    ])
    return {
      api: Object.fromEntries(guarded) as typeof opened.api,
      reopen() {
        isWritten = true
        opened.reopen()
      },
    }
  }
}

/** A cluster file with these machines. */
export function clusterText(roles: Readonly<Record<string, readonly string[]>>, more = ''): string {
  const nodes = Object.entries(roles).map(
    ([name, role]) =>
      `- {address: 10.0.0.${name}, hostname_override: "${name}", user: root, role: [${role.join(', ')}]}\n`,
  )
  return `nodes:\n${nodes.join('')}network: {plugin: flannel}\ndns: {provider: none}\ningress: {provider: none}\nmonitoring: {provider: none}\n${more}`
}
