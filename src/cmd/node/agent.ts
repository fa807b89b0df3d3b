/** `hyperkube node agent`: the supervisor by the plan of a server. */
import { hostname } from 'node:os'

import { type Flag, flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'
import { LOG_FLAGS } from '#lib/log-flags.ts'
import { defineProgram, type Program, type ProgramContext, ProgramError } from '#lib/program.ts'
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
  'or a word for where to ask: awslocal, awspublic, doprivate, dopublic, azprivate, azpublic, gceinternal, gceexternal, packetlocal, packetpublic, ipify'

export const AGENT_FLAGS: { readonly [K in keyof AgentFlags]: Flag<AgentFlags[K]> } = {
  server: flag(string, '', '`address` of the server, https://… (or CATTLE_SERVER)'),
  token: flag(string, '', '`token` by which it knows this node; others can read command lines (or CATTLE_TOKEN)'),
  'token-file': flag(string, '', '`file` that holds the token'),
  'ca-checksum': flag(string, '', "SHA-256 of the server's authority, in hex (or CATTLE_CA_CHECKSUM)"),
  'node-name': flag(string, '', 'name of this node (default: that of the machine; or CATTLE_NODE_NAME)'),
  address: flag(string, '', `address by which others reach this node, ${ADDRESS_HINT} (or CATTLE_ADDRESS)`),
  'internal-address': flag(
    string,
    '',
    'address by which other nodes do (default: that of the default route; or CATTLE_INTERNAL_ADDRESS)',
  ),
  label: flag(stringArray, [], 'label of the node, `key=value`; may be repeated'),
  taint: flag(stringArray, [], 'taint of the node, `key=value:effect`; may be repeated'),
}

/** Throws ProgramError. */
export async function agentSettings(
  flags: AgentFlags,
  { env, readFile }: Pick<ProgramContext, 'env' | 'readFile'>,
): Promise<AgentSettings> {
  const said = (value: string, variable: string): string => value || (env[`CATTLE_${variable}`] ?? '')
  const server = said(flags.server, 'SERVER').replace(/\/+$/, '')
  if (!/^https:\/\/[^/]/.test(server)) throw new ProgramError('Name the server: --server=https://… or CATTLE_SERVER')
  const fromFile = flags['token-file'] === '' ? '' : (await readFile(flags['token-file'])).trim()
  const token = fromFile || said(flags.token, 'TOKEN')
  if (token === '') throw new ProgramError('Give the token: --token-file, --token or CATTLE_TOKEN')
  return {
    server,
    token,
    caChecksum: said(flags['ca-checksum'], 'CA_CHECKSUM'),
    nodeName: said(flags['node-name'], 'NODE_NAME') || hostname(),
    address: said(flags.address, 'ADDRESS'),
    internalAddress: said(flags['internal-address'], 'INTERNAL_ADDRESS'),
    labels: Object.fromEntries(flags.label.map(labelOf)),
    taints: flags.taint,
  }
}

function labelOf(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw new ProgramError(`"${text}" is no label; write key=value`)
  return [text.slice(0, at), text.slice(at + 1)]
}

export const agent: Program = defineProgram({
  name: 'agent',
  long:
    'agent connects to a server, asks it what this node is to be, and keeps kubelet, flanneld and kube-proxy alive as it says. ' +
    'While the server is away the node goes on with what it said last. A server that does not know this node any more has it cleaned.',
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
      allows: (_, address) => isOfThisMachine(address),
    })
    closing.defer(() => link.close())
    running = new Agent({ host, server: link, createSupervisor, report: leaveStatus })
    if ((await running.run(signal)) === 'removed') await forgetService(host, flags.root)
    return 0
  },
})

/** systemd is not to start what has nothing to do any more. Where there is no service there is nothing to forget. */
async function forgetService(host: Host, root: string): Promise<void> {
  if (!(await host.files.exists(unitFile(root)))) return
  await host.processes.output('systemctl', ['disable', UNIT])
  await host.files.remove(unitFile(root))
}

/** The server reaches what this machine itself serves, kubelet for one; nothing behind it. */
function isOfThisMachine(address: string): boolean {
  return /^(?:127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d+$/.test(address)
}

/** Asked for once and kept: a server that is away must not keep this node from coming up. */
async function authority(host: Host, settings: AgentSettings): Promise<string | undefined> {
  const { files, layout, clock } = host
  const kept = settings.caChecksum === '' ? undefined : await files.read(layout.serverCa)
  if (kept !== undefined && isCaOf(kept, settings.caChecksum)) return kept
  const ca = await fetchServerCa(clock, settings)
  if (ca !== undefined) await files.write(layout.serverCa, ca)
  return ca
}
