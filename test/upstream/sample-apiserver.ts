/** Starts upstream's sample-apiserver as a local process with its own etcd, for a server in front of it. */
import { type ChildProcess, spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { stringifyYaml } from '#lib/yaml/yaml.ts'

import { launch } from './kube-apiserver.ts'
import { ask, type Server } from './ours.ts'

/** An address of this machine that no other can reach, yet no loopback address, which endpoints may not have. */
export const OWN_ADDRESS = '10.213.0.1'

/** False where one may not. */
export function changeAddress(verb: 'add' | 'del', address: string = OWN_ADDRESS): boolean {
  return spawnSync('ip', ['addr', verb, `${address}/32`, 'dev', 'lo']).status === 0
}

/** Writes a kubeconfig of a ServiceAccount. */
export async function writeAccount(server: Server, namespace: string, name: string, file: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`
  const { status, body } = await ask(server, { method: 'POST', path, body: { spec: {} } })
  if (status !== 201) throw new Error(`no token: ${JSON.stringify(body)}`)
  const { token } = (body as { status: { token: string } }).status
  const cluster = {
    server: `https://127.0.0.1:${server.port}`,
    'certificate-authority-data': Buffer.from(server.tls.ca).toString('base64'),
  }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  }
  await writeFile(file, stringifyYaml(config), { mode: 0o600 })
  return file
}

export interface SamplePlan {
  /** For its files and its log. */
  readonly folder: string
  /** Its credentials for the server in front of it. */
  readonly kubeconfig: string
  /** PEM. */
  readonly serving: { readonly certificate: string; readonly key: string }
  readonly host: string
  readonly port: number
  readonly etcd: string
}

export async function launchSample(program: string, plan: SamplePlan): Promise<ChildProcess> {
  const { folder, kubeconfig, serving, host, port, etcd } = plan
  const [certificate, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  await Promise.all([writeFile(certificate, serving.certificate), writeFile(key, serving.key, { mode: 0o600 })])
  const flags = [
    `--etcd-servers=${etcd}`,
    `--tls-cert-file=${certificate}`,
    `--tls-private-key-file=${key}`,
    `--bind-address=${host}`,
    `--secure-port=${port}`,
    ...['', 'authentication-', 'authorization-'].map((part) => `--${part}kubeconfig=${kubeconfig}`),
  ]
  return launch(program, flags, join(folder, 'sample-apiserver.log'))
}
