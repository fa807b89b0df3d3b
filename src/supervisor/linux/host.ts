/** Implements the host interface on Linux. */
import { access, mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import type { Clock } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { mountsBelow, readMountTable } from '#lib/files/mount-table.ts'
import type { HttpClient } from '#lib/http/client.ts'
import { createIpRoute, type IpRoute, type LinkState } from '#lib/net/iproute.ts'

import { hostFiles } from '../host-files.ts'
import type { Adapter, Host, HostEnvironment, HostFiles, HostNetwork, PodNetwork } from '../host.ts'
import { linuxLayout } from '../layout.ts'
import type { ProcessName } from '../process-names.ts'
import { linuxProcesses } from './processes.ts'

export interface LinuxHostOptions {
  readonly clock: Clock
  readonly http: Pick<HttpClient, 'request'>
  /** `/` except for nodes that share a machine. */
  readonly root: string
  readonly say: (text: string) => void
  readonly ended: (name: ProcessName) => void
  /** The destination of process output: files, or the journal with the process name. */
  readonly logs?: 'files' | 'journal'
}

/** The size limit of HTTP responses: metadata, health, installers. */
const MAX_BODY = 256 * 1024 * 1024

export function linuxHost({ clock, http, root, say, ended, logs = 'files' }: LinuxHostOptions): Host {
  const at = (path: string): string => join(root, path)
  const layout = linuxLayout(root)
  const stateFolder = at('/run/hyperkube/node')
  const ip = createIpRoute()
  const get: Host['web']['get'] = async (url, headers, timeoutMs) => {
    const answer = await http.request({ url, headers, timeoutMs })
    if (answer.status >= 300) throw new Error(`${url} answered ${answer.status}`)
    return answer.text(MAX_BODY)
  }
  return {
    system: 'linux',
    layout,
    clock,
    say,
    files: linuxFiles(get),
    processes: linuxProcesses({ clock, layout, stateFolder, logFolder: at('/var/log/hyperkube'), ended, logs }),
    environment: linuxEnvironment(at('/etc/kubernetes/node-environment.json')),
    network: linuxNetwork(ip, layout.subnetFile),
    web: { get },
  }
}

function linuxFiles(get: Host['web']['get']): HostFiles {
  const files = hostFiles(dirname, 0o700)
  return {
    ...files,
    async empty(folder) {
      const names = await readdir(folder).catch(() => [])
      const mount = mountsBelow(await readMountTable(), folder).findLast(({ path }) => path !== folder)
      if (mount !== undefined) throw new Error(`${mount.path} is mounted in it`)
      for (const name of names) await rm(join(folder, name), { recursive: true, force: true })
    },
    download: async (url, path, timeoutMs) => files.write(path, await get(url, {}, timeoutMs)),
    // Linux programs are not signed.
    signer: async () => undefined,
  }
}

/** Machine-wide variables are a file on Linux. */
function linuxEnvironment(file: string): HostEnvironment {
  const read = async (): Promise<Record<string, string>> =>
    JSON.parse(await readFile(file, 'utf8').catch(() => '{}')) as Record<string, string>
  const write = async (known: Readonly<Record<string, string>>): Promise<void> => {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await writeFileAtomically(file, `${JSON.stringify(known, undefined, 2)}\n`, { mode: 0o600 })
  }
  return {
    get: async (name) => process.env[name] ?? (await read())[name],
    ofMachine: async (name) => (await read())[name],
    async set(name, value) {
      const known = await read()
      if (known[name] !== value) await write({ ...known, [name]: value })
    },
    async remove(name) {
      const { [name]: value, ...rest } = await read()
      if (value !== undefined) await write(rest)
    },
  }
}

function isFlannelLink({ ifname, linkinfo }: LinkState): boolean {
  return ifname.startsWith('flannel.') && linkinfo?.info_kind === 'vxlan'
}

function linuxNetwork(ip: IpRoute, subnetFile: string): HostNetwork {
  return {
    async adapters() {
      const [links, routes] = await Promise.all([ip.links(), ip.routes(4)])
      return links.flatMap(({ ifname, ifindex, addr_info }): Adapter[] => {
        const gateway = routes.find(({ dst, dev }) => dst === 'default' && dev === ifname)?.gateway
        const ipv4 = addr_info.filter(({ family }) => family === 'inet')
        return ipv4.map(({ local, prefixlen }) => ({
          name: ifname,
          index: ifindex,
          address: local,
          prefixLength: prefixlen,
          gateway,
        }))
      })
    },
    async addRoute({ prefix, interfaceIndex, gateway, metric }) {
      const link = (await ip.links()).find(({ ifindex }) => ifindex === interfaceIndex)
      if (link === undefined) throw new Error(`There is no interface ${interfaceIndex}`)
      await ip.ip([['route', 'add', prefix, 'via', gateway, 'dev', link.ifname, 'metric', String(metric)]])
    },
    pods: {
      // VXLAN has a link; host-gw has only routes and the subnet file.
      async list() {
        const links = (await ip.links()).filter(isFlannelLink)
        if (links.length > 0)
          return links.map(({ ifname }): PodNetwork => ({ id: ifname, name: 'cbr0', type: 'vxlan' }))
        const isThere = await access(subnetFile).then(
          () => true,
          () => false,
        )
        return isThere ? [{ id: subnetFile, name: 'cbr0', type: 'host-gw' }] : []
      },
      remove: (id) => (id === subnetFile ? rm(id, { force: true }) : ip.ip([['link', 'delete', id]])),
      removeServicePolicies: () => Promise.resolve(),
    },
    restartProxy: () => Promise.resolve(),
  }
}
