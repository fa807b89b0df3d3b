/**
 * The web console of `hyperkube up`, in the process of the cluster. Requests go to the API server without a connection;
 * upgrades, such as shells, go over loopback with the administrator's certificate.
 */
import { ADMIN, type RunningCluster } from '#cluster/cluster.ts'
import type { LocalPki } from '#cluster/local-pki.ts'
import { bracketed } from '#component/bound-port.ts'
import type { ConsoleTarget } from '#component/console/one-cluster/cluster-route.ts'
import { type ConsolePort, openConsolePort } from '#component/console/one-cluster/port.ts'
import type { SessionUser } from '#component/console/session-view.ts'
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, int } from '#lib/flags/kinds.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import type { Invocation } from '#lib/program.ts'
import { hyperkubeVersion } from '#model/version.ts'

import { removeConsoleLink, sessionsIn, writeConsoleLink } from './console-files.ts'

export const CONSOLE_FLAGS: { readonly console: Flag<boolean>; readonly 'console-port': Flag<number> } = {
  console: flag(bool, true, 'Serve the web console, on 127.0.0.1 only.'),
  'console-port': flag(
    int,
    6444,
    'Port of the web console. 0, or a port that is in use, picks a free one; -1 starts no console.',
  ),
}

export interface UpConsolePlan {
  readonly dataDir: string
  /** The name of the cluster for people. */
  readonly displayName: string
  readonly cluster: RunningCluster
  /** The certificates that are valid now. */
  readonly pki: () => LocalPki
  /** The command that shows a new link. */
  readonly newLinkCommand: string
}

type Tools = Pick<Invocation<{ readonly console: typeof CONSOLE_FLAGS }>, 'flags' | 'clock' | 'random' | 'log'>

/** Resolves with the log-in link; undefined if there is no console. A failure never stops the cluster. */
export async function startUpConsole(
  tools: Tools,
  plan: UpConsolePlan,
  closing: AsyncDisposableStack,
): Promise<string | undefined> {
  const upgrades = upgradesOf(tools, plan)
  const opening = openConsole(tools, plan, upgrades)
  closing.defer(async () => {
    const console = await opening
    await console?.close()
    upgrades.close()
    await removeConsoleLink(plan.dataDir)
  })
  const console = await opening
  return console?.link
}

async function openConsole(tools: Tools, plan: UpConsolePlan, upgrades: Upgrades): Promise<ConsolePort | undefined> {
  const { flags, log } = tools
  const port = flags['console-port']
  try {
    await removeConsoleLink(plan.dataDir)
    if (!flags.console || port < 0) return undefined
    return await openConsolePort({ ...tools, port, ...optionsOf(plan, upgrades) })
  } catch (error) {
    log.error(error, 'Failed to start the console', { port })
    return undefined
  }
}

/** The member of system:masters that the kubeconfig has too. */
const USER: SessionUser = {
  name: ADMIN.name,
  username: ADMIN.name,
  displayName: ADMIN.name,
  isAdministrator: true,
  mustChangePassword: false,
  groups: ADMIN.groups,
}

function optionsOf(
  { dataDir, displayName, cluster, newLinkCommand }: UpConsolePlan,
  upgrades: Upgrades,
): Omit<Parameters<typeof openConsolePort>[0], 'clock' | 'random' | 'log' | 'port'> {
  const { request } = cluster.running.server.clientAs(ADMIN)
  const target: ConsoleTarget = { client: { request, upgrade: upgrades.upgrade }, server: urlOf(cluster) }
  return {
    target,
    displayName,
    version: hyperkubeVersion(),
    user: () => Promise.resolve(USER),
    newLinkCommand,
    onLink: (link) => writeConsoleLink(dataDir, link),
    store: sessionsIn(dataDir),
  }
}

function urlOf({ running }: RunningCluster): string {
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[running.host] ?? running.host
  return `https://${bracketed(host)}:${running.port}`
}

interface Upgrades extends Pick<HttpClient, 'upgrade'> {
  close(): void
}

/** A client that exists from the first upgrade on, with the newest certificate. */
function upgradesOf({ clock }: Pick<Tools, 'clock'>, { pki }: UpConsolePlan): Upgrades {
  let used: { readonly pki: LocalPki; readonly client: HttpClient } | undefined
  const clientNow = (): HttpClient => {
    const current = pki()
    if (used?.pki === current) return used.client
    used?.client.retire()
    const { ca, admin } = current
    const tls = { ca: ca.certificatePem, certificate: admin.certificate, key: admin.key }
    used = { pki: current, client: createHttpClient({ clock, tls, http1Only: true }) }
    return used.client
  }
  return { upgrade: (request) => clientNow().upgrade(request), close: () => used?.client.close() }
}
