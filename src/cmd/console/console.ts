/** `hyperkube console`: the web console for a context of a kubeconfig, on this machine only. */
import { SelfSubjectReviews } from '#apis/authentication/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { userConfig } from '#client/connection/config.ts'
import { type Connection, openConnection } from '#client/connection/connection.ts'
import { kubeconfigFiles } from '#client/connection/kubeconfig-files.ts'
import type { ConsoleOptions } from '#component/console/one-cluster/options.ts'
import { openConsolePort } from '#component/console/one-cluster/port.ts'
import type { SessionUser } from '#component/console/session-view.ts'
import { aborted } from '#lib/abort.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { int, string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import { type ClientConfig, readKubeconfigs } from '#model/kubeconfig/reading.ts'
import { hyperkubeVersion, kubernetesVersion, userAgent } from '#model/version.ts'

const FLAGS = {
  console: {
    kubeconfig: flag(string, '', 'kubeconfig `file` (default: KUBECONFIG, or ~/.kube/config)'),
    context: flag(string, '', 'The context of the kubeconfig (default: its current context)'),
    port: flag(int, 6444, 'Port on 127.0.0.1. 0, or a port that is in use, picks a free one.'),
  },
  logs: LOG_FLAGS,
} as const satisfies FlagGroups

type ConsoleInvocation = Invocation<typeof FLAGS>

export const consoleProgram: Program = defineProgram({
  name: 'console',
  long:
    'console serves the web console for one context of a kubeconfig, to browsers on this machine. It prints a link that ' +
    'logs one browser in. Requests have the credentials of the context.',
  version: kubernetesVersion(),
  flags: FLAGS,
  run: runConsole,
})

async function runConsole(invocation: ConsoleInvocation, signal: AbortSignal): Promise<number> {
  const { flags, clock, random, log, stdout } = invocation
  if (flags.port < 0 || flags.port > 65_535) throw new ProgramError(`--port: ${flags.port} is not a port`)
  await using closing = new AsyncDisposableStack()
  const { config, displayName } = await chooseConfig(invocation).catch(explain)
  const connection = await connect(invocation, config).catch(explain)
  closing.defer(() => connection.close())
  const options: ConsoleOptions = {
    clock,
    random,
    log,
    displayName,
    port: flags.port,
    target: targetOf(connection),
    version: hyperkubeVersion(),
    user: identityOf(invocation, connection),
    newLinkCommand: 'hyperkube console',
    onLink: linkPrinter(stdout, displayName),
  }
  const console = await openConsolePort(options)
  closing.defer(() => console.close())
  await aborted(signal)
  return 0
}

async function chooseConfig({
  flags: { kubeconfig, context },
  env,
  cwd,
  readFile,
}: ConsoleInvocation): Promise<{ readonly config: ClientConfig; readonly displayName: string }> {
  const config = await userConfig(kubeconfig, context === '' ? {} : { context }, { env, cwd, readFile })
  if (context !== '') return { config, displayName: context }
  const { currentContext: current } = await readKubeconfigs(kubeconfigFiles(kubeconfig, env), readFile, cwd)
  return { config, displayName: current === '' ? (config.cluster.server ?? '') : current }
}

function connect({ clock, env, readFile, log }: ConsoleInvocation, config: ClientConfig): Promise<Connection> {
  return openConnection(config, {
    clock,
    env,
    readFile,
    writeFile: (path, text) => writeFileAtomically(path, text, { mode: 0o600 }),
    stdinUse: 'used by no terminal: the console runs in the background',
    onError: (error) => log.error(error, 'Failed to refresh client credentials'),
  })
}

function targetOf(connection: Connection): ConsoleOptions['target'] {
  const client = {
    request: (request: Parameters<Connection['transport']['request']>[0]) => connection.transport.request(request),
    upgrade: (request: Parameters<Connection['upgrade']>[0]) => connection.upgrade(request),
  }
  return { client, server: connection.server }
}

/** One line for each link: the first, and another each time that one was used. */
function linkPrinter(stdout: ConsoleInvocation['stdout'], displayName: string): ConsoleOptions['onLink'] {
  let count = 0
  return async (link) => {
    const what = count++ === 0 ? `Console of "${displayName}"` : 'Link for another browser'
    stdout.write(`${what}: ${link}\n`)
  }
}

const REVIEW_MS = 5000

/** Asks the API server once; before it answers, the user has no name. */
function identityOf({ clock, log }: ConsoleInvocation, connection: Connection): () => Promise<SessionUser> {
  const client = new ApiClient({ ...connection, clock, userAgent: userAgent('hyperkube-console') })
  let known: SessionUser | undefined
  return async () => {
    known ??= await review(client, AbortSignal.timeout(REVIEW_MS)).catch((error: unknown) => {
      log.error(error, 'Failed to read the identity of the kubeconfig')
      return undefined
    })
    return known ?? userOf('unknown', [])
  }
}

async function review(client: ApiClient, signal: AbortSignal): Promise<SessionUser> {
  const { status } = await client.create(SelfSubjectReviews, { metadata: {} }, { signal })
  return userOf(status.userInfo?.username ?? 'unknown', status.userInfo?.groups ?? [])
}

function userOf(name: string, groups: readonly string[]): SessionUser {
  const isAdministrator = groups.includes('system:masters')
  return { name, username: name, displayName: name, isAdministrator, mustChangePassword: false, groups }
}

function explain(cause: unknown): never {
  throw cause instanceof ConfigError ? new ProgramError(cause.message, { cause }) : cause
}
