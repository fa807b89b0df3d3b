/**
 * Credential plugins (`client.authentication.k8s.io`): a user's program that prints a token or certificate. It runs
 * again when the credential expires or the server refuses it.
 */
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'
import { parseJson } from '#lib/json/json.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { epochMsOf } from '#meta/time.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'
import type { ClientConfig } from '#model/kubeconfig/reading.ts'

export interface ExecCredentials {
  readonly token?: string
  readonly certificate?: string
  readonly key?: string
}

export interface ExecPlugin {
  /** The current credentials. Rejects with ConfigError. */
  credentials(): Promise<ExecCredentials>
  /** Runs the plugin again because the server refused these credentials, unless another caller already did. */
  refused(credentials: ExecCredentials): Promise<void>
}

export interface PluginContext {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The program gets our standard input, which is a terminal. */
  readonly isInteractive: boolean
}

/** Runs a program to its end. Rejects with the system's error if it cannot start. */
export type RunPlugin = (
  command: string,
  args: readonly string[],
  context: PluginContext,
) => Promise<{ readonly code: number; readonly output: string }>

export interface ExecPluginOptions {
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
  readonly run?: RunPlugin
  /** Whether standard input is a terminal. Default: asks the system. */
  readonly isTerminal?: () => boolean
  /** Why plugins cannot read standard input, if something else reads it. */
  readonly stdinUse?: string | undefined
}

const GROUP = 'client.authentication.k8s.io'
const VERSIONS = [`${GROUP}/v1`, `${GROUP}/v1beta1`]
const MISSING = `

It looks like you are trying to use a client-go credential plugin that is not installed.

To learn more about this feature, consult the documentation available at:
      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins`

/** Undefined if the user has no plugin. Throws ConfigError for an unsupported one. */
export function createExecPlugin(config: ClientConfig, options: ExecPluginOptions): ExecPlugin | undefined {
  const { exec } = config.user
  if (exec === undefined) return undefined
  const version = exec.apiVersion ?? ''
  if (!VERSIONS.includes(version)) throw new ConfigError(`exec plugin: invalid apiVersion ${goQuote(version)}`)
  const { clock } = options
  let last: { readonly credentials: ExecCredentials; readonly expiresMs: number } | undefined
  let asking: Promise<ExecCredentials> | undefined
  const ask = (): Promise<ExecCredentials> => {
    asking ??= runExecPlugin(config, options)
      .then((found) => (last = found).credentials)
      .finally(() => (asking = undefined))
    return asking
  }
  return {
    credentials: () => (last !== undefined && clock.now() < last.expiresMs ? Promise.resolve(last.credentials) : ask()),
    async refused(credentials) {
      if (last?.credentials === credentials) await ask()
    },
  }
}

async function runExecPlugin(
  config: ClientConfig,
  options: ExecPluginOptions,
): Promise<{ readonly credentials: ExecCredentials; readonly expiresMs: number }> {
  const { run = runPlugin } = options
  const { exec = {} } = config.user
  const { command = '', args, env: own, installHint = '', interactiveMode } = exec
  const isInteractive = isInteractiveWith(interactiveMode, options)
  const added = Object.fromEntries((own ?? []).map(({ name, value }) => [name, value]))
  const env = { ...options.env, ...added, KUBERNETES_EXEC_INFO: execInfo(config, isInteractive) }
  const { code, output } = await run(command, args ?? [], { env, isInteractive }).catch(
    (cause: NodeJS.ErrnoException) => {
      // This error already names its reason.
      if (cause instanceof ConfigError) throw cause
      if (cause.code !== 'ENOENT') throw new ConfigError(`exec: ${cause.message}`, { cause })
      const hint = installHint === '' ? '' : `\n\n${installHint}`
      throw new ConfigError(`exec: executable ${command} not found${MISSING}${hint}`, { cause })
    },
  )
  if (code !== 0) throw new ConfigError(`exec: executable ${command} failed with exit code ${code}`)
  return readCredentials(output, exec.apiVersion ?? '')
}

/** v1beta1 has a default mode. Throws ConfigError for a mode that this process cannot support. */
function isInteractiveWith(mode = 'IfAvailable', { isTerminal = hasTerminal, stdinUse }: ExecPluginOptions): boolean {
  if (mode === 'Never') return false
  if (mode !== 'Always') return stdinUse === undefined && isTerminal()
  const why = isTerminal()
    ? stdinUse && `standard input is unavailable: ${stdinUse}`
    : 'standard input is not a terminal'
  if (why !== undefined) throw new ConfigError(`exec plugin cannot support interactive mode: ${why}`)
  return true
}

function hasTerminal(): boolean {
  return process.getBuiltinModule('node:tty').isatty(0)
}

function execInfo({ cluster, user }: ClientConfig, isInteractive: boolean): string {
  const { server, 'tls-server-name': name, 'insecure-skip-tls-verify': insecure, 'proxy-url': proxy } = cluster
  const { 'certificate-authority-data': ca, extensions = [] } = cluster
  const extension = extensions.find((one) => one.name === `${GROUP}/exec`)?.extension
  const clusterInfo = {
    server,
    ...(name !== undefined && { 'tls-server-name': name }),
    ...(insecure === true && { 'insecure-skip-tls-verify': true }),
    ...(ca !== undefined && { 'certificate-authority-data': ca }),
    ...(proxy !== undefined && { 'proxy-url': proxy }),
    config: extension ?? null,
  }
  const spec = { ...(user.exec?.provideClusterInfo === true && { cluster: clusterInfo }), interactive: isInteractive }
  return `${JSON.stringify({ kind: 'ExecCredential', apiVersion: user.exec?.apiVersion, spec })}\n`
}

async function readCredentials(
  output: string,
  version: string,
): Promise<{ readonly credentials: ExecCredentials; readonly expiresMs: number }> {
  const status = statusIn(await parsed(output), version)
  const [token, certificate, key] = ['token', 'clientCertificateData', 'clientKeyData'].map((field) => {
    const value = status[field] ?? ''
    if (typeof value === 'string') return value === '' ? undefined : value
    const place = `Go struct field ExecCredentialStatus.status.${field} of type string`
    throw new ConfigError(`decoding stdout: json: cannot unmarshal ${jsonTypeOf(value)} into ${place}`)
  })
  if (token === undefined && certificate === undefined && key === undefined) {
    throw new ConfigError("exec plugin didn't return a token or cert/key pair")
  }
  if ((certificate === undefined) !== (key === undefined)) {
    throw new ConfigError('exec plugin returned only certificate or key, not both')
  }
  const expiry = status['expirationTimestamp']
  return {
    credentials: {
      ...(token !== undefined && { token }),
      ...(certificate !== undefined && { certificate }),
      ...(key !== undefined && { key }),
    },
    expiresMs: typeof expiry === 'string' ? epochMsOf(expiry) : Infinity,
  }
}

/** Throws ConfigError with the text of upstream's decoder. */
function statusIn(answer: JsonObject, version: string): JsonObject {
  const apiVersion = textOf(answer['apiVersion'])
  const kind = textOf(answer['kind'])
  if (kind !== '' && (kind !== 'ExecCredential' || !VERSIONS.includes(apiVersion))) {
    const scheme = 'in scheme "pkg/runtime/scheme.go:111"'
    throw new ConfigError(
      `decoding stdout: no kind ${goQuote(kind)} is registered for version ${goQuote(apiVersion)} ${scheme}`,
    )
  }
  if (apiVersion !== version) {
    const returned = apiVersion === '' ? `${GROUP}/__internal` : apiVersion
    throw new ConfigError(
      `exec plugin is configured to use API version ${version}, plugin returned version ${returned}`,
    )
  }
  const status = answer['status'] ?? null
  if (status === null) throw new ConfigError("exec plugin didn't return a status field")
  if (isJsonObject(status)) return status
  const place = `Go struct field ExecCredential.status of type ${version.slice(version.indexOf('/') + 1)}.ExecCredentialStatus`
  throw new ConfigError(`decoding stdout: json: cannot unmarshal ${jsonTypeOf(status)} into ${place}`)
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : ''
}

function jsonTypeOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

const TYPE_META = String.raw`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`

/** JSON, or YAML if it does not begin like JSON. An empty output is an empty object. */
async function parsed(output: string): Promise<JsonObject> {
  const fail = (why: string): ConfigError =>
    new ConfigError(`decoding stdout: couldn't get version/kind; json parse error: ${why}`)
  let value: JsonValue
  try {
    value = /^\s*\{/.test(output) ? parseJson(output) : (await import('#lib/yaml/yaml.ts')).parseYaml(output)
  } catch (cause) {
    throw fail((cause as Error).message)
  }
  if (value === null) return {}
  if (isJsonObject(value)) return value
  throw fail(`json: cannot unmarshal ${jsonTypeOf(value)} into Go value of type ${TYPE_META}`)
}

/** Runs the plugin with node:child_process. */
export const runPlugin: RunPlugin = (command, args, { env, isInteractive }) =>
  new Promise((done, fail) => {
    // Loaded on demand: few users have a plugin, and loading costs every start time.
    const { spawn } = process.getBuiltinModule('node:child_process')
    const stdin = isInteractive ? 'inherit' : 'ignore'
    const child = spawn(command, [...args], { env: { ...env }, stdio: [stdin, 'pipe', 'inherit'] })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.once('error', fail)
    child.once('close', (code) => done({ code: code ?? -1, output: Buffer.concat(chunks).toString() }))
  })
