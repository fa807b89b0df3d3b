/** `hyperkube node agent`: runs the supervisor with a plan (files and settings) that a server sends. */
import { hostname } from 'node:os'

import { type Flag, flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { defineProgram, type Program, type ProgramContext, ProgramError } from '#lib/program.ts'
import { connectTo } from '#lib/tunnel/connect-to.ts'
import { Agent } from '#supervisor/agent/agent.ts'
import { type AgentSettings, nodeParameters } from '#supervisor/agent/parameters.ts'
import { createServerLink, fetchServerCa, isCaOf } from '#supervisor/agent/server-link.ts'
import type { Host } from '#supervisor/host.ts'
import { unitFile } from '#supervisor/linux/installation.ts'
import { UNIT } from '#supervisor/linux/unit.ts'

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
    labels: Object.fromEntries(flags.label.map(labelOf)),
    taints: flags.taint,
  }
}

function labelOf(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw new ProgramError(`"${text}" is not a label; use key=value`)
  return [text.slice(0, at), text.slice(at + 1)]
}

export const agent: Program = defineProgram({
  name: 'agent',
  long:
    'agent connects to a server, fetches the plan of this node, and runs kubelet, flanneld and kube-proxy accordingly. ' +
    'Without the server the node continues with its last plan. If the server has removed the node, the agent cleans the machine.',
  flags: { agent: { ...AGENT_FLAGS, ...SUPERVISION_FLAGS }, logs: LOG_FLAGS },
  async run({ flags, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const settings = await agentSettings(flags, context)
    let running: Agent | undefined
    const { host, createSupervisor, leaveStatus } = await superviseHere(flags, context, closing, () => running?.status)
    const ca = await authority(host, settings)
    const link = createServerLink({
      clock: context.clock,
      settings,
      ca,
      parameters: () => nodeParameters(host, settings),
      accept: connectTo((_, address) => isOfThisMachine(address)),
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

/** The server may connect only to ports of this machine, such as the kubelet's. */
function isOfThisMachine(address: string): boolean {
  return /^(?:127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d+$/.test(address)
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
