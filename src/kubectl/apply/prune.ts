/** `--prune`: deletes objects that were applied earlier and that no file contains now. */
import type { JsonObject } from '#lib/json/value.ts'

import type { Info } from '../builder/select-options.ts'
import type { Invocation } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { type DryRun, withDryRun } from '../flag-sets.ts'
import { logWarning } from '../klog.ts'
import { printerOf } from '../printing.ts'
import type { AnyObject } from '../session/rest.ts'
import { LAST_APPLIED } from './last-applied.ts'

/** The default allowlist: group, version, kind. */
const KINDS = [
  '/v1/ConfigMap',
  '/v1/Endpoints',
  '/v1/PersistentVolumeClaim',
  '/v1/Pod',
  '/v1/ReplicationController',
  '/v1/Secret',
  '/v1/Service',
  'batch/v1/Job',
  'batch/v1/CronJob',
  'networking.k8s.io/v1/Ingress',
  'apps/v1/DaemonSet',
  'apps/v1/Deployment',
  'apps/v1/ReplicaSet',
  'apps/v1/StatefulSet',
  '/v1/Namespace',
  '/v1/PersistentVolume',
]

interface PruneContext extends Pick<Invocation, 'session' | 'stderr' | 'clock'> {
  readonly flags: { readonly selector: string; readonly 'prune-allowlist': readonly string[] }
}

/** An object that was applied earlier and that no file contains now. */
export interface Prunable {
  readonly kind: Info['kind']
  readonly namespace: string
  readonly object: AnyObject
}

/** Looks in the namespaces of the applied objects and at cluster-scoped objects. Throws KubectlError. */
export async function* prunable(context: PruneContext, applied: readonly Info[]): AsyncGenerator<Prunable> {
  const { flags, session } = context
  const kinds = await kindsOf(context)
  const { namespace, isExplicit } = await session.namespace()
  const namespaces = new Set(applied.filter(({ kind }) => kind.namespaced).map((info) => info.namespace))
  if (isExplicit) namespaces.add(namespace)
  const kept = new Set(applied.map(({ object }) => object?.metadata.uid))
  const rest = await session.rest()
  const namespaced = kinds.filter((kind) => kind.namespaced)
  const scopes = [...namespaces].flatMap((where) => namespaced.map((kind) => ({ kind, where })))
  const others = kinds.filter((kind) => !kind.namespaced).map((kind) => ({ kind, where: '' }))
  for (const { kind, where } of [...scopes, ...others]) {
    const query = { labelSelector: flags.selector }
    const list = await rest.get({ kind, namespace: where }, { query }).catch((error: unknown) => {
      throw pruneError(error, kind, where)
    })
    for (const item of list['items'] as AnyObject[]) {
      const { annotations = {}, uid } = item.metadata
      if (!Object.hasOwn(annotations, LAST_APPLIED) || kept.has(uid)) continue
      yield { kind, namespace: where, object: { ...item, kind: kind.kind, apiVersion: apiVersion(kind) } }
    }
  }
}

function pruneError(error: unknown, kind: Info['kind'], where: string): KubectlError {
  const what = `${kind.group}/${kind.version}, Kind=${kind.kind}`
  const scope = where === '' ? 'nonNamespaced' : 'namespaced'
  return new KubectlError(`error pruning ${scope} object ${what}: ${asError(error).message}`, { cause: error })
}

interface DeletingContext extends PruneContext, Pick<Invocation, 'stdout' | 'cwd'> {
  readonly flags: PruneContext['flags'] & { readonly output: string; readonly 'grace-period': number }
}

/** Throws KubectlError. */
export async function prune(
  context: DeletingContext,
  applied: readonly Info[],
  { dryRun, policy }: { readonly dryRun: DryRun; readonly policy: string },
): Promise<void> {
  const { flags, session, stdout } = context
  const printer = await printerOf(context, { operation: withDryRun('pruned', dryRun) })
  const rest = await session.rest()
  const grace = flags['grace-period']
  const options = {
    ...(grace >= 0 && { gracePeriodSeconds: grace }),
    propagationPolicy: policy,
    ...(dryRun === 'server' && { dryRun: ['All'] }),
  }
  for await (const { kind, namespace, object } of prunable(context, applied)) {
    const { name = '' } = object.metadata
    if (dryRun !== 'client') {
      await rest.delete({ kind, namespace, name }, options).catch((error: unknown) => {
        throw pruneError(error, kind, namespace)
      })
    }
    printer.print(object as unknown as JsonObject, stdout)
  }
}

function apiVersion({ group, version }: Info['kind']): string {
  return group === '' ? version : `${group}/${version}`
}

async function kindsOf(context: PruneContext): Promise<Info['kind'][]> {
  const { session, flags } = context
  const allowed = flags['prune-allowlist']
  if (allowed.length === 0) {
    logWarning(
      context,
      'prune.go:71',
      'Deprecated: kubectl apply will no longer prune non-namespaced resources by default when used with the --namespace flag in a future release. To preserve the current behaviour, list the resources you want to target explicitly in the --prune-allowlist flag.',
    )
  }
  const mapper = await session.mapper()
  const kinds: Info['kind'][] = []
  for (const name of allowed.length === 0 ? KINDS : allowed) {
    const [group = '', version = '', kind = '', ...rest] = name.split('/')
    if (kind === '' || rest.length > 0) {
      throw new KubectlError(`invalid GroupVersionKind format: ${name}, please follow <group/version/kind>`)
    }
    const prefix = group === '' || group === 'core' ? '' : `${group}/`
    kinds.push(await mapper.ofObject(`${prefix}${version}`, kind))
  }
  return kinds
}
