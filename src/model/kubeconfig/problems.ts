/** Validates a cluster or a user of a kubeconfig, with upstream's texts. */
import { goQuote } from '#lib/go/text.ts'

import type { ClusterEntry, UserEntry } from './entries.ts'

/** The problem of a file, if there is one. */
export type ProblemOf = (file: string) => Promise<string | undefined>

export function problemIn(readFile: (path: string) => Promise<string>): ProblemOf {
  return (file) =>
    readFile(file).then(
      () => undefined,
      (error: unknown) => `open ${file}: ${wasMissing(error) ? 'no such file or directory' : (error as Error).message}`,
    )
}

export function wasMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}

export async function clusterProblems(name: string, cluster: ClusterEntry, problemOf: ProblemOf): Promise<string[]> {
  if (Object.keys(cluster).length === 0) {
    return ['no configuration has been provided, try setting KUBERNETES_MASTER environment variable']
  }
  const { server = '', 'certificate-authority': file = '', 'certificate-authority-data': data = '' } = cluster
  const problems: string[] = []
  if (server === '') {
    problems.push(
      name === '' ? 'default cluster has no server defined' : `no server found for cluster ${goQuote(name)}`,
    )
  }
  if (file !== '' && data !== '') {
    problems.push(
      `certificate-authority-data and certificate-authority are both specified for ${name}. certificate-authority-data will override.`,
    )
  }
  const problem = file === '' ? undefined : await problemOf(file)
  if (problem !== undefined) problems.push(`unable to read certificate-authority ${file} for ${name} due to ${problem}`)
  return problems
}

export async function userProblems(name: string, user: UserEntry, problemOf: ProblemOf): Promise<string[]> {
  const methods = [...(user.token ? ['token'] : []), ...(user.username || user.password ? ['basicAuth'] : [])]
  const problems = [...(await certificateProblems(name, user, problemOf)), ...execProblems(name, user)]
  if (methods.length > 1) {
    problems.push(
      `more than one authentication method found for ${name}; found [${methods.join(' ')}], only one is allowed`,
    )
  }
  const impersonated = [user['as-uid'] ?? '', user['as-groups'] ?? [], Object.keys(user['as-user-extra'] ?? {})]
  if (impersonated.some(({ length }) => length > 0) && (user.as ?? '') === '') {
    problems.push(`requesting uid, groups or user-extra for ${name} without impersonating a user`)
  }
  return problems
}

async function certificateProblems(name: string, user: UserEntry, problemOf: ProblemOf): Promise<string[]> {
  const { 'client-certificate': file = '', 'client-certificate-data': data = '' } = user
  const { 'client-key': keyFile = '', 'client-key-data': keyData = '' } = user
  if (file === '' && data === '') return []
  const has = (field: string): boolean => field !== ''
  const checks: [isSo: boolean, text: string][] = [
    [
      has(file) && has(data),
      `client-cert-data and client-cert are both specified for ${name}. client-cert-data will override.`,
    ],
    [
      has(keyFile) && has(keyData),
      `client-key-data and client-key are both specified for ${name}; client-key-data will override`,
    ],
    [
      !has(keyFile) && !has(keyData),
      `client-key-data or client-key must be specified for ${name} to use the clientCert authentication method.`,
    ],
  ]
  const problems = checks.filter(([isSo]) => isSo).map(([, text]) => text)
  const files = [['client-cert', file] as const, ['client-key', keyFile] as const].filter(([, path]) => has(path))
  for (const [what, path] of files) {
    const problem = await problemOf(path)
    if (problem !== undefined) problems.push(`unable to read ${what} ${path} for ${name} due to ${problem}`)
  }
  return problems
}

const INTERACTIVE_MODES = ['Never', 'IfAvailable', 'Always']

function execProblems(name: string, { exec, 'auth-provider': provider }: UserEntry): string[] {
  if (exec === undefined) return []
  const must = (what: string): string => `${what} must be specified for ${name} to use exec authentication plugin`
  // The older version of the API does not support it.
  const mode = exec.interactiveMode ?? (exec.apiVersion === 'client.authentication.k8s.io/v1' ? '' : 'IfAvailable')
  return [
    ...(provider === undefined
      ? []
      : [`authProvider cannot be provided in combination with an exec plugin for ${name}`]),
    ...(exec.command ? [] : [must('command')]),
    ...(exec.apiVersion ? [] : [must('apiVersion')]),
    ...((exec.env ?? []).some((one) => !one.name) ? [must('env variable name')] : []),
    ...(mode === '' ? [must('interactiveMode')] : []),
    ...(mode === '' || INTERACTIVE_MODES.includes(mode)
      ? []
      : [`invalid interactiveMode for ${name}: ${goQuote(mode)}`]),
  ]
}

/** In Go's form of aggregated errors. */
export function aggregated(texts: readonly string[]): string {
  return texts.length === 1 ? texts.join('') : `[${texts.join(', ')}]`
}
