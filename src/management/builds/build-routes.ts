/** The HTTP routes of built clusters: their cluster file, private files, host keys and snapshots. */
import { generateName, type KubeObject } from '#meta/object.ts'
import { badRequestError, conflictError, notFoundError, serviceUnavailableError } from '#meta/status-errors.ts'
import { clusterJsonSchema } from '#provision/file/cluster-json-schema.ts'
import { readKnownHosts } from '#provision/ssh/known-hosts.ts'

import { timeout } from '../clusters/cluster-status.ts'
import {
  type ClusterAccess,
  CLUSTERS,
  type PersonCall,
  personRoute,
  refuseUnknown,
  textField,
} from '../clusters/requests.ts'
import type { ClusterDraft, ClusterSource } from '../clusters/source.ts'
import { type Cluster, type ClusterBuild, Clusters } from '../kinds/cluster.ts'
import type { Reply, Route } from '../port/route.ts'
import { followTemplate } from '../templates/follow-template.ts'
import type { SecretFields } from './build-file.ts'
import { clusterFiles } from './cluster-files.ts'
import { type BuildServices, BUILD_FINALIZER, CHANGED_BY_ANNOTATION, FORCE_ANNOTATION } from './context.ts'
import { explainFailure } from './explain.ts'
import {
  approvalOf,
  type BuiltCluster,
  fileOf,
  type GivenFile,
  MAX_FILE_BYTES,
  ownedBuild,
  sshKeyOf,
} from './requests.ts'
import { type BuildSecrets, changeSecrets, createSecrets, deleteSecrets, readSecrets } from './secrets.ts'
import { redactionOf } from './tasks.ts'
import { findSnapshots } from './work.ts'

export interface BuildRoutesOptions extends ClusterAccess {
  readonly builds: BuildServices
}

export function buildRoutes(options: BuildRoutesOptions): readonly Route[] {
  const owned =
    (serve: (options: BuildRoutesOptions, call: PersonCall, cluster: BuiltCluster) => Promise<Reply>) =>
    (call: PersonCall): Promise<Reply> =>
      serve(options, call, ownedBuild(options, call))
  return [
    personRoute('GET', '/v3/clusters/:cluster/build', owned(showBuild)),
    personRoute('PUT', '/v3/clusters/:cluster/build', owned(changeBuild)),
    personRoute('POST', '/v3/clusters/:cluster/files', owned(sendFile)),
    personRoute('POST', '/v3/clusters/:cluster/host-keys', owned(forgetHostKey)),
    personRoute('GET', '/v3/clusters/:cluster/snapshots', owned(listSnapshots)),
    personRoute('GET', '/v3/cluster-file-schema', () => ({ status: 200, body: clusterJsonSchema() })),
  ]
}

/**
 * `POST /v3/clusters` with `"source":"built"`, and `file`, `approval` and `sshKey`. `DELETE` removes the cluster
 * from its machines before the Cluster goes.
 */
export function buildSource(options: ClusterAccess): ClusterSource {
  return {
    name: 'built',
    draft: (call, fields) => draftBuild(options, call, fields),
    beginRemoval: (cluster, call) => beginRemoval(options, cluster, call),
  }
}

async function draftBuild(
  { objects }: ClusterAccess,
  { person }: PersonCall,
  { file, template, approval: wanted, sshKey, ...unknown }: Readonly<Record<string, unknown>>,
): Promise<ClusterDraft> {
  refuseUnknown(unknown)
  const followed = textField('template', template)
  const { build, secrets: fields, notices } = fileOf(followTemplate(objects, followed.template, file))
  const [approval, key] = [approvalOf(wanted), sshKeyOf(sshKey)]
  const { client, random } = objects
  const name = generateName('c-', random)
  // Before the Cluster, because the controller needs them for it.
  await createSecrets(client, name, { random, fields, ...(key !== undefined && { sshKey: key }) })
  return {
    name,
    annotations: { [CHANGED_BY_ANNOTATION]: person.user.metadata.name ?? '' },
    finalizers: [BUILD_FINALIZER],
    spec: { build: { ...build, ...followed, ...(approval !== undefined && { approval }) } },
    reply: { notices },
    discard: () => deleteSecrets(client, name),
  }
}

/** `{"force":true}`: unreachable machines keep what they have. */
async function beginRemoval({ objects }: ClusterAccess, { metadata }: Cluster, call: PersonCall): Promise<void> {
  const { force = false, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  if (typeof force !== 'boolean') throw badRequestError('force must be true or false')
  const { name = '' } = metadata
  const annotations = {
    [CHANGED_BY_ANNOTATION]: call.person.user.metadata.name ?? '',
    ...(force && { [FORCE_ANNOTATION]: 'true' }),
  }
  await objects.client.patch(Clusters, { name }, { type: 'merge', value: { metadata: { annotations } } })
  await objects.client.delete(Clusters, { name })
}

async function secretsOf({ objects }: ClusterAccess, { metadata }: KubeObject): Promise<BuildSecrets> {
  const found = await readSecrets(objects.client, metadata.name ?? '')
  if (found === undefined) throw serviceUnavailableError('the cluster is being created: try again')
  return found
}

/** The names of keys and passwords are shown, never the values. */
async function showBuild(options: BuildRoutesOptions, _call: PersonCall, cluster: BuiltCluster): Promise<Reply> {
  const { fields, sshPublicKey } = await secretsOf(options, cluster)
  const { file, config, template, approval = 'Manual' } = cluster.spec.build
  const body = { file: file ?? config, template, approval, secrets: Object.keys(fields), sshPublicKey }
  return { status: 200, body }
}

interface FileChange {
  readonly given: GivenFile | undefined
  readonly approval: ClusterBuild['approval']
  readonly sshKey: string | undefined
}

/** `keepsSecrets`: keys and passwords that the new file lacks stay as they are. */
async function changeOf(
  { objects }: ClusterAccess,
  call: PersonCall,
  { cluster, fields }: { readonly cluster: BuiltCluster; readonly fields: SecretFields },
): Promise<FileChange> {
  const { file, approval, sshKey, keepsSecrets = false, ...unknown } = await call.readBody(MAX_FILE_BYTES)
  refuseUnknown(unknown)
  if (typeof keepsSecrets !== 'boolean') throw badRequestError('keepsSecrets must be true or false')
  const { template } = cluster.spec.build
  const known = keepsSecrets ? fields : {}
  const given = file === undefined ? undefined : fileOf(followTemplate(objects, template, file), known)
  return { given, approval: approvalOf(approval), sshKey: sshKeyOf(sshKey) }
}

async function changeBuild(options: BuildRoutesOptions, call: PersonCall, cluster: BuiltCluster): Promise<Reply> {
  const { objects } = options
  const { name = '' } = cluster.metadata
  if (cluster.metadata.deletionTimestamp !== undefined)
    throw conflictError(CLUSTERS, name, 'the cluster is being removed')
  const before = await secretsOf(options, cluster)
  const { given, approval, sshKey } = await changeOf(options, call, { cluster, fields: before.fields })
  const isSame = given === undefined || JSON.stringify(given.secrets) === JSON.stringify(before.fields)
  const revision = isSame ? cluster.spec.build.revision : objects.random.bytes(8).toString('hex')
  await changeSecrets(objects.client, name, {
    ...(!isSame && { fields: given.secrets }),
    ...(sshKey !== undefined && { sshKey }),
  })
  const changed = await objects.change(Clusters, name, (now) => {
    const { build: last = {} } = now.spec
    const content = given?.build ?? contentOf(last)
    const wanted = approval ?? last.approval
    const build = {
      ...content,
      ...(last.template !== undefined && { template: last.template }),
      ...(revision !== undefined && { revision }),
      ...(wanted !== undefined && { approval: wanted }),
    }
    const annotations = { ...now.metadata.annotations, [CHANGED_BY_ANNOTATION]: call.person.user.metadata.name ?? '' }
    return { ...now, metadata: { ...now.metadata, annotations }, spec: { ...now.spec, build } }
  })
  const { file: text, config } = changed.spec.build ?? {}
  return { status: 200, body: { file: text ?? config, notices: given?.notices ?? [] } }
}

function contentOf({ file, config }: ClusterBuild): Pick<ClusterBuild, 'file' | 'config'> {
  return { ...(file !== undefined && { file }), ...(config !== undefined && { config }) }
}

/** POST, because tokens that may only read must not get keys. The audit log has the request. */
async function sendFile(options: BuildRoutesOptions, call: PersonCall, cluster: BuiltCluster): Promise<Reply> {
  const files = clusterFiles(cluster.spec.build, await secretsOf(options, cluster))
  const { file, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  if (typeof file !== 'string' || !Object.hasOwn(files, file))
    throw badRequestError(`file must be one of ${Object.keys(files).join(', ')}`)
  const text = files[file]?.()
  if (text === undefined) throw notFoundError({ group: '', resource: 'files' }, file)
  options.objects.log.info('Downloaded private file of cluster', {
    cluster: cluster.metadata.name,
    file,
    user: call.person.user.metadata.name,
  })
  return { status: 200, body: text }
}

/** The next connection records the key that the machine shows then. */
async function forgetHostKey(options: BuildRoutesOptions, call: PersonCall, cluster: BuiltCluster): Promise<Reply> {
  const { host, ...unknown } = await call.readBody()
  refuseUnknown(unknown)
  if (typeof host !== 'string' || host === '') throw badRequestError('host must be the address of a machine')
  const { knownHosts } = await secretsOf(options, cluster)
  const lines = knownHosts.split('\n').filter((line) => line !== '')
  const kept = lines.filter((line) => line.split(/\s/)[0] !== host)
  if (kept.length === lines.length) throw notFoundError({ group: '', resource: 'host-keys' }, host)
  const text = kept.map((line) => `${line}\n`).join('')
  await changeSecrets(options.objects.client, cluster.metadata.name ?? '', { knownHosts: text })
  return { status: 200, body: { hostKeys: readKnownHosts(text) } }
}

const LIST_MS = 60_000

async function listSnapshots(options: BuildRoutesOptions, call: PersonCall, cluster: BuiltCluster): Promise<Reply> {
  const { objects, builds } = options
  const secrets = await secretsOf(options, cluster)
  const work = {
    client: objects.client,
    cluster: cluster.metadata.name ?? '',
    build: cluster.spec.build,
    secrets,
    server: { url: builds.serverUrl(), certificateAuthority: builds.ca() ?? '' },
  }
  const signal = AbortSignal.any([call.exchange.signal, timeout(objects.clock, LIST_MS)])
  const listed = await findSnapshots(work, builds.around, signal).catch((error: unknown) => {
    throw serviceUnavailableError(redactionOf(secrets)(explainFailure((error as Error).message)))
  })
  const items = listed.flatMap(({ host, snapshots }) => snapshots.map((snapshot) => ({ machine: host, ...snapshot })))
  return { status: 200, body: { items } }
}
