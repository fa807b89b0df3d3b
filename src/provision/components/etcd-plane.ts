/** Computes the etcd setup of a machine: program, initial members, health check and snapshots. Pure. */
import { type ClusterFile, type ClusterNode, nodesOf } from '../cluster.ts'
import type { DesiredFile, DesiredUpload, Health } from '../desired.ts'
import { certificatePaths, CONFIG_FILES, FOLDERS, hostPath } from '../host-paths.ts'
import * as pki from '../pki/plan.ts'
import { etcdMemberName, urlOf } from './component-flags.ts'

/** A file of the operator to upload; undefined if machines have their own. */
export type EtcdProgram = Pick<DesiredUpload, 'source' | 'sha256'> | undefined

/** The initial members matter only at the first start; later etcd has its own record. */
const JOINING_FILE = '/etc/kubernetes/etcd-members.env'
const PROGRAM = '/opt/hyperkube/etcd/etcd'

export function joiningFile(cluster: ClusterFile): string {
  return hostPath(cluster, JOINING_FILE)
}

export function firstMembers(cluster: ClusterFile): DesiredFile {
  const members = nodesOf(cluster, 'etcd').map(
    (node) => `${etcdMemberName(node)}=${urlOf(node.internal_address, 2380)}`,
  )
  const text = `ETCD_INITIAL_CLUSTER=${members.join(',')}\nETCD_INITIAL_CLUSTER_STATE=new\n`
  return { path: joiningFile(cluster), mode: 0o600, content: Buffer.from(text), once: true }
}

export function etcdUploads(cluster: ClusterFile, program: EtcdProgram): DesiredUpload[] {
  return program === undefined ? [] : [{ ...program, path: hostPath(cluster, PROGRAM), mode: 0o755 }]
}

export function etcdProgram(cluster: ClusterFile, program: EtcdProgram): string {
  return program === undefined ? '/usr/bin/etcd' : hostPath(cluster, PROGRAM)
}

export function etcdHealth(cluster: ClusterFile, node: ClusterNode): Health {
  const { certificate, key } = certificatePaths(cluster, pki.hostStem('kube-etcd', node))
  return {
    url: 'https://127.0.0.1:2379/health',
    authority: certificatePaths(cluster, pki.ETCD_CA).certificate,
    certificate,
    key,
  }
}

/** The service that takes snapshots of the local member. */
export function snapshotArguments(cluster: ClusterFile, node: ClusterNode): string[] {
  const { certificate, key } = certificatePaths(cluster, pki.hostStem('kube-etcd', node))
  const { timeout, s3backupconfig } = cluster.services.etcd.backup_config
  return [
    'machine',
    'etcd-snapshots',
    `--folder=${hostPath(cluster, FOLDERS.snapshots)}`,
    '--endpoint=https://127.0.0.1:2379',
    `--cacert=${certificatePaths(cluster, pki.ETCD_CA).certificate}`,
    `--cert=${certificate}`,
    `--key=${key}`,
    `--timeout=${timeout}s`,
    ...(s3backupconfig === undefined ? [] : [`--bucket=${hostPath(cluster, CONFIG_FILES.snapshotBucket)}`]),
  ]
}
