/** Upstream's kube-controller-manager and kube-scheduler, started for a server of ours. */
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'

import { launch } from './kube-apiserver.ts'
import { upstreamPrograms } from './programs.ts'

/** Those of a cluster that need no node, by name; the certificates of the server and their logs are in `folder`. */
export async function startComponents(folder: string, kubeconfig: string): Promise<Map<string, ChildProcess>> {
  const say = (line: string): boolean => process.stderr.write(`${line}\n`)
  const programs = await upstreamPrograms(['kube-controller-manager', 'kube-scheduler'], say)
  const pki = (name: string): string => join(folder, 'pki', name)
  const both = [`--kubeconfig=${kubeconfig}`, '--secure-port=0', '--leader-elect=false']
  const manager = [
    '--use-service-account-credentials=true',
    `--service-account-private-key-file=${pki('sa.key')}`,
    `--root-ca-file=${pki('ca.crt')}`,
    `--cluster-signing-cert-file=${pki('ca.crt')}`,
    `--cluster-signing-key-file=${pki('ca.key')}`,
  ]
  const started = new Map<string, ChildProcess>()
  for (const [name, more] of [
    ['kube-controller-manager', manager],
    ['kube-scheduler', []],
  ] as const) {
    started.set(name, await launch(programs[name], [...both, ...more], join(folder, `${name}.log`)))
  }
  return started
}
