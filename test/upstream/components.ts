/** Starts kube-controller-manager and kube-scheduler, ours or upstream's, on our API server or upstream's. */
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'

import { launch } from './kube-apiserver.ts'
import { HYPERKUBE } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

/** Selects our programs or upstream's. */
export type Make = 'ours' | "upstream's"

/** Those of a cluster that need no node, by name; the certificates of the server and their logs are in `folder`. */
export async function startComponents(
  folder: string,
  kubeconfig: string,
  { manager = "upstream's", scheduler = "upstream's" }: { readonly manager?: Make; readonly scheduler?: Make } = {},
): Promise<Map<string, ChildProcess>> {
  const say = (line: string): boolean => process.stderr.write(`${line}\n`)
  const name = 'kube-scheduler'
  const [file, ...first] = scheduler === 'ours' ? [HYPERKUBE, name] : [(await upstreamPrograms([name], say))[name]]
  const flags = [`--kubeconfig=${kubeconfig}`, '--secure-port=0', '--leader-elect=false']
  return new Map([
    ['kube-controller-manager', await startManager(folder, kubeconfig, { make: manager })],
    [name, await launch(file, [...first, ...flags], join(folder, `${name}.log`))],
  ])
}

export interface ManagerStart {
  readonly make: Make
  /** Besides the usual ones. */
  readonly flags?: readonly string[]
  /** The name of its log in the folder. */
  readonly log?: string
  /** The program and first arguments for ours; default: these sources. */
  readonly program?: readonly [file: string, ...args: string[]]
}

/** With credentials of their own for its controllers, and everything that they need of the server's certificates. */
export async function startManager(folder: string, kubeconfig: string, start: ManagerStart): Promise<ChildProcess> {
  const name = 'kube-controller-manager'
  const { make, flags = [], log = `${name}.log`, program: [file, ...args] = [HYPERKUBE] } = start
  const pki = (file: string): string => join(folder, 'pki', file)
  const usual = [
    `--kubeconfig=${kubeconfig}`,
    '--secure-port=0',
    '--leader-elect=false',
    '--use-service-account-credentials=true',
    `--service-account-private-key-file=${pki('sa.key')}`,
    `--root-ca-file=${pki('ca.crt')}`,
    `--cluster-signing-cert-file=${pki('ca.crt')}`,
    `--cluster-signing-key-file=${pki('ca.key')}`,
  ]
  if (make === 'ours') return launch(file, [...args, name, ...usual, ...flags], join(folder, log))
  const programs = await upstreamPrograms([name], (line) => process.stderr.write(`${line}\n`))
  return launch(programs[name], [...usual, ...flags], join(folder, log))
}
