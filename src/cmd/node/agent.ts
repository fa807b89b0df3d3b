/** `hyperkube node agent`: runs the supervisor with a plan (files and settings) that a server sends. */
import { arch, hostname } from 'node:os'
import { join, resolve } from 'node:path'

import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { defineProgram, type Program, type ProgramContext, ProgramError } from '#lib/program.ts'
import { hyperkubeVersion } from '#model/version.ts'
import { Agent } from '#supervisor/agent/agent.ts'
import { openCredential } from '#supervisor/agent/credential.ts'
import { type AgentSettings, NODE_ROLES, type NodeRole, nodeParameters } from '#supervisor/agent/parameters.ts'
import { createServerLink, fetchServerCa, isCaOf } from '#supervisor/agent/server-link.ts'
import type { Host } from '#supervisor/host.ts'
import { unitFile } from '#supervisor/linux/installation.ts'
import { UNIT } from '#supervisor/linux/unit.ts'

import { acceptStreams } from './machine-streams.ts'
import { superviseHere, SUPERVISION_FLAGS } from './machine.ts'

export interface AgentFlags {
  readonly server: string
  readonly token: string
  readonly 'token-file': string
  readonly 'ca-checksum': string
  readonly 'node-name': string
  readonly address: string
  readonly 'internal-address': string
  readonly label: readonly string[]
  readonly taint: readonly string[]
  readonly etcd: boolean
  readonly controlplane: boolean
  readonly worker: boolean
  readonly kubeconfig: string
  readonly 'loopback-port': readonly string[]
}

const ADDRESS_HINT =
  'or a keyword for its source: awslocal, awspublic, doprivate, dopublic, azprivate, azpublic, gceinternal, gceexternal, packetlocal, packetpublic, ipify'

export const AGENT_FLAGS: { readonly [K in keyof AgentFlags]: Flag<AgentFlags[K]> } = {
  server: flag(string, '', '`address` of the server, https://… (or CATTLE_SERVER)'),
  token: flag(string, '', '`token` of this node; other users can read command lines (or CATTLE_TOKEN)'),
  'token-file': flag(string, '', '`file` with the token'),
  'ca-checksum': flag(string, '', "SHA-256 of the server's certificate authority, in hex (or CATTLE_CA_CHECKSUM)"),
  'node-name': flag(string, '', 'name of this node (default: the host name; or CATTLE_NODE_NAME)'),
  address: flag(string, '', `external address of this node, ${ADDRESS_HINT} (or CATTLE_ADDRESS)`),
  'internal-address': flag(
    string,
    '',
    'internal address of this node (default: the address of the default route; or CATTLE_INTERNAL_ADDRESS)',
  ),
  label: flag(stringArray, [], 'label of the node, `key=value`; may be repeated'),
  taint: flag(stringArray, [], 'taint of the node, `key=value:effect`; may be repeated'),
  etcd: flag(bool, false, 'this machine becomes a member of etcd'),
  controlplane: flag(bool, false, 'this machine becomes a control plane'),
  worker: flag(bool, false, 'this machine becomes a worker; without any role it does too'),
  kubeconfig: flag(
    string,
    '',
    '`file` for requests to the API server of this control plane, of a user who may impersonate others (default: that of the cluster agent)',
  ),
  'loopback-port': flag(stringArray, [], '`port` of 127.0.0.1 that the server may connect to; may be repeated'),
}

/** Throws ProgramError. */
export async function agentSettings(
  flags: AgentFlags,
  { env, readFile }: Pick<ProgramContext, 'env' | 'readFile'>,
): Promise<AgentSettings> {
  const orVariable = (value: string, variable: string): string => value || (env[`CATTLE_${variable}`] ?? '')
  const server = orVariable(flags.server, 'SERVER').replace(/\/+$/, '')
  if (!/^https:\/\/[^/]/.test(server)) throw new ProgramError('Set the server: --server=https://… or CATTLE_SERVER')
  const fromFile = flags['token-file'] === '' ? '' : (await readFile(flags['token-file'])).trim()
  const token = fromFile || orVariable(flags.token, 'TOKEN')
  if (token === '') throw new ProgramError('Set the token: --token-file, --token or CATTLE_TOKEN')
  return {
    server,
    token,
    caChecksum: orVariable(flags['ca-checksum'], 'CA_CHECKSUM'),
    nodeName: orVariable(flags['node-name'], 'NODE_NAME') || hostname(),
    address: orVariable(flags.address, 'ADDRESS'),
    internalAddress: orVariable(flags['internal-address'], 'INTERNAL_ADDRESS'),
    roles: rolesOf(flags),
    labels: Object.fromEntries(flags.label.map(labelOf)),
    taints: flags.taint,
  }
}

function rolesOf(flags: Pick<AgentFlags, NodeRole>): readonly NodeRole[] {
  const roles = NODE_ROLES.filter((role) => flags[role])
  return roles.length === 0 ? ['worker'] : roles
}

function labelOf(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw new ProgramError(`"${text}" is not a label; use key=value`)
  return [text.slice(0, at), text.slice(at + 1)]
}

export const agent: Program = defineProgram({
  name: 'agent',
  long:
    'agent connects this machine to a server. Through the connection the server builds the machine, or it gives a worker a plan: ' +
    'the agent then runs kubelet, flanneld and kube-proxy accordingly. ' +
    'Without the server the node continues with its last plan. If the server has removed the node, the agent cleans the machine.',
  flags: { agent: { ...AGENT_FLAGS, ...SUPERVISION_FLAGS }, logs: LOG_FLAGS },
  async run({ flags, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const settings = await agentSettings(flags, context)
    let running: Agent | undefined
    const { host, createSupervisor, leaveStatus } = await superviseHere(flags, context, closing, () => running?.status)
    const ca = await authority(host, settings)
    const kubeconfig = flags.kubeconfig === '' ? agentKubeconfig(host) : resolve(context.cwd, flags.kubeconfig)
    const loopbackPorts = new Set(flags['loopback-port'])
    const link = createServerLink({
      clock: context.clock,
      settings,
      ca,
      credential: await openCredential(host, context.random),
      parameters: async () => ({ ...(await nodeParameters(host, settings)), machine: thisMachine() }),
      accept: acceptStreams({ ...context, kubeconfig, loopbackPorts, roles: settings.roles }, closing),
    })
    closing.defer(() => link.close())
    running = new Agent({ host, server: link, createSupervisor, report: leaveStatus })
    if ((await running.run(signal)) === 'removed') await forgetService(host, flags.root)
    return 0
  },
})

/** systemd must not restart an agent whose node is removed. Without a service there is nothing to disable. */
async function forgetService(host: Host, root: string): Promise<void> {
  if (!(await host.files.exists(unitFile(root)))) return
  await host.processes.output('systemctl', ['disable', UNIT])
  await host.files.remove(unitFile(root))
}

/** The builder writes it to control planes. */
function agentKubeconfig({ layout }: Host): string {
  return join(layout.certificates, 'kubecfg-kube-cluster-agent.yaml')
}

/** For the status of the Machine at the server. */
function thisMachine(): object {
  const os = process.platform === 'win32' ? 'windows' : process.platform
  return { os, architecture: arch(), hostname: hostname(), agentVersion: hyperkubeVersion() }
}

/** Looked up once and stored, so that an unreachable source does not stop the node from starting. */
async function authority(host: Host, settings: AgentSettings): Promise<string | undefined> {
  const { files, layout, clock } = host
  const kept = settings.caChecksum === '' ? undefined : await files.read(layout.serverCa)
  if (kept !== undefined && isCaOf(kept, settings.caChecksum)) return kept
  const ca = await fetchServerCa(clock, settings)
  if (ca !== undefined) await files.write(layout.serverCa, ca)
  return ca
}
