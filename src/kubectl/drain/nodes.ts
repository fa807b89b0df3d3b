/** Selects the nodes of `cordon`, `uncordon` and `drain`, and sets spec.unschedulable. */
import type { Node } from '#apis/core/v1.ts'
import type { Flag } from '#lib/flags/flags.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { select } from '../builder/builder.ts'
import type { Info } from '../builder/select-options.ts'
import { type Invocation, usageError } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { DRY_RUN_FLAG, type DryRun, dryRunQuery, SELECTOR_FLAG, withDryRun } from '../flag-sets.ts'
import { namePrinter } from '../print/structured.ts'

export const NODE_FLAGS: { readonly selector: Flag<string>; readonly 'dry-run': Flag<string> } = {
  ...SELECTOR_FLAG,
  ...DRY_RUN_FLAG,
}

interface NodeInvocation extends Pick<
  Invocation,
  'args' | 'changed' | 'session' | 'path' | 'cwd' | 'stdin' | 'stdout' | 'stderr'
> {
  readonly flags: { readonly selector: string }
}

/** Throws KubectlError; `use` is the usage of the command. */
export function checkNodes(invocation: NodeInvocation, use: string): void {
  const { args, changed, flags } = invocation
  if (args.length === 0 && !changed.has('selector')) throw usageError(invocation, `USAGE: ${use} [flags]`)
  if (args.length > 0 && flags.selector !== '') {
    throw usageError(invocation, 'error: cannot specify both a node name and a --selector option')
  }
}

export async function selectNodes(invocation: NodeInvocation, chunkSize = 500): Promise<Info[]> {
  const { args, flags, session } = invocation
  const selection = await select({
    session,
    io: invocation,
    namespace: (await session.namespace()).namespace,
    chunkSize,
    resourceNames: { type: 'nodes', names: args },
    singleResourceType: true,
    flatten: true,
    ...(flags.selector !== '' && { labelSelector: flags.selector, resourceTypes: ['nodes'] }),
  })
  const { infos, error } = await selection.infos()
  if (error !== undefined) throw error
  const other = infos.find(({ kind }) => kind.group !== '' || kind.plural !== 'nodes')
  if (other !== undefined) {
    const { group, version, plural } = other.kind
    throw new KubectlError(`error: expected resource of type node, got "${group}/${version}, Resource=${plural}"`)
  }
  return infos
}

/** A failure of one node does not stop the others. */
export async function cordonNodes(
  { session, stdout, stderr }: NodeInvocation,
  nodes: readonly Info[],
  { isWanted, dryRun }: { readonly isWanted: boolean; readonly dryRun: DryRun },
): Promise<void> {
  const rest = await session.rest()
  const verb = isWanted ? 'cordon' : 'uncordon'
  for (const info of nodes) {
    const { spec } = info.object as unknown as Node
    const isAlready = (spec?.unschedulable ?? false) === isWanted
    try {
      if (!isAlready && dryRun !== 'client') {
        const patch = { spec: { unschedulable: isWanted || null } }
        await rest.patch(info, 'strategic', patch, dryRunQuery(dryRun))
      }
    } catch (error) {
      stderr.write(`error: unable to ${verb} node "${info.name}": ${asError(error).message}\n`)
      continue
    }
    const operation = withDryRun(`${isAlready ? 'already ' : ''}${verb}ed`, dryRun)
    namePrinter({ operation }).print(info.object as unknown as JsonObject, stdout)
  }
}
