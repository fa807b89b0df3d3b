/** Validates requests for built clusters: permissions, the cluster file, and the requested Operation. */
import { isJsonObject } from '#lib/json/value.ts'
import { badRequestError, invalidError, notFoundError } from '#meta/status-errors.ts'
import { omitted } from '#meta/validation/field-path.ts'

import { type ClusterAccess, ownedCluster, type PersonCall } from '../clusters/requests.ts'
import { type Cluster, type ClusterBuild, Clusters } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import { type Operation, Operations } from '../kinds/operation.ts'
import { divideFile, readBuildFile, type SecretFields } from './build-file.ts'

const OPERATIONS = { group: GROUP, resource: 'operations' } as const

/** A cluster file may have thousands of lines. */
export const MAX_FILE_BYTES: number = 1 << 20

export type BuiltCluster = Cluster & { readonly spec: { readonly build: ClusterBuild } }

/** Throws StatusError if the person is no owner, or if the server has not built the cluster. */
export function ownedBuild(options: ClusterAccess, call: PersonCall): BuiltCluster {
  const cluster = ownedCluster(options, call)
  if (cluster.spec.build === undefined) throw badRequestError('only built clusters have this')
  return cluster as BuiltCluster
}

/**
 * The Operation of a request. The user who removed a cluster can read the Operation after the cluster is gone.
 * Throws StatusError 404 for an Operation of another cluster too.
 */
export function ownedOperation(options: ClusterAccess, call: PersonCall): Operation {
  const { objects, memberships } = options
  const { cluster = '', operation = '' } = call.params
  const found = objects.get(Operations, operation)
  const { user } = call.person
  const isGone = objects.get(Clusters, cluster) === undefined && found?.spec.cluster === cluster
  const mayLook = memberships.isAdministrator(user) || found?.spec.requestedBy === user.metadata.name
  if (!(isGone && mayLook)) ownedBuild(options, call)
  if (found?.spec.cluster !== cluster) throw notFoundError(OPERATIONS, operation)
  return found
}

export interface GivenFile {
  readonly build: Pick<ClusterBuild, 'file' | 'config'>
  readonly secrets: SecretFields
  /** Values that have another effect than in RKE. */
  readonly notices: readonly string[]
}

/** Text, or an object of the same form. Throws StatusError 422 with all faults. */
export function fileOf(value: unknown, known: SecretFields = {}): GivenFile {
  const given = typeof value === 'string' ? { file: value } : isJsonObject(value) ? { config: value } : undefined
  if (given === undefined) throw badRequestError('file must be the text of a cluster.yml, or an object')
  const { build, secrets } = divideFile(given)
  const all = { ...known, ...secrets }
  const { faults, notices } = readBuildFile(given, known)
  if (faults.length > 0) {
    const errors = faults.map(({ path, line, text }) => ({
      type: 'FieldValueInvalid' as const,
      field: path === '' ? 'file' : `file.${path}`,
      badValue: omitted,
      // Lines mean nothing in an object.
      detail: typeof value === 'string' ? `line ${line}: ${text}` : text,
    }))
    throw invalidError({ group: GROUP, kind: 'Cluster' }, '', errors)
  }
  const lines = notices.map(({ line, path, text }) => `line ${line}: ${path}: ${text}`)
  return { build, secrets: all, notices: lines }
}

export function approvalOf(value: unknown): ClusterBuild['approval'] {
  if (value === undefined || value === 'Manual' || value === 'Automatic') return value
  throw badRequestError('approval must be "Automatic" or "Manual"')
}

const PRIVATE_KEY = /^-----BEGIN (?:OPENSSH |RSA |EC )?PRIVATE KEY-----\r?\n[\s\S]+-----END [A-Z ]+-----\s*$/

export function sshKeyOf(value: unknown): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string' || !PRIVATE_KEY.test(value) || value.includes('ENCRYPTED'))
    throw badRequestError('sshKey must be a private key as PEM, without a passphrase')
  return value.endsWith('\n') ? value : `${value}\n`
}
