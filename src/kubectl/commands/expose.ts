/** kubectl expose: a service for a workload that is there. */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json-value.ts'
import { parseYaml } from '#lib/yaml.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { EXPOSABLE, exposedService } from '../exposed-service.ts'
import { DRY_RUN_FLAG, dryRunOf, dryRunQuery, fieldManagerFlag, fileFlags, withDryRun } from '../flag-sets.ts'
import { withMadeConfig } from '../last-applied.ts'
import { patchedLocally } from '../local-patch.ts'
import { printerOf, printFlags } from '../printing.ts'
import { RECORD_FLAG, recorded } from '../recording.ts'
import type { AnyObject, PatchType } from '../rest.ts'
import { selectFor } from '../selected.ts'

const FLAGS = {
  ...printFlags(),
  ...fileFlags('identifying the resource to expose a service'),
  ...DRY_RUN_FLAG,
  ...RECORD_FLAG,
  ...fieldManagerFlag('kubectl-expose'),
  'cluster-ip': flag(string, '', "Address of the service. Empty: any. 'None': a headless service."),
  'external-ip': flag(string, '', 'A further address, not of Kubernetes, at which the service answers.'),
  labels: flag(string, '', 'Labels of the service.', { shorthand: 'l' }),
  'load-balancer-ip': flag(string, '', 'Address of the load balancer. Empty: any.'),
  name: flag(string, '', 'The name of the new object.'),
  'override-type': flag(string, 'merge', 'How --overrides is applied: json, merge or strategic.'),
  overrides: flag(string, '', 'JSON that changes the object before it is created; it needs an apiVersion.'),
  port: flag(string, '', 'The port of the service. Empty: that of the workload.'),
  protocol: flag(string, '', "The protocol of the service. Default is 'TCP'."),
  'save-config': flag(bool, false, 'Remember the configuration in an annotation, for kubectl apply.'),
  selector: flag(string, '', 'Labels of the pods of the service, as key=value. Empty: those of the workload.'),
  'session-affinity': flag(string, '', "The session affinity of the service: 'None' or 'ClientIP'."),
  'target-port': flag(string, '', 'Name or number of the port of the container.'),
  type: flag(
    string,
    '',
    "Type of the service: ClusterIP, NodePort, LoadBalancer, or ExternalName. Default is 'ClusterIP'.",
  ),
}

type ExposeInvocation = Invocation<typeof FLAGS>

export const expose: Command = defineCommand({
  name: 'expose',
  use: '(-f FILENAME | TYPE NAME) [--port=port] [--protocol=TCP|UDP|SCTP] [--target-port=number-or-name] [--name=name] [--external-ip=external-ip-of-service] [--type=type] [options]',
  long: 'Expose a pod, service, replication controller, deployment or replica set as a new service. The selector is that of the workload, if it says no more than equality.',
  examples: `# A service for a deployment, on port 80, that leads to port 8000
kubectl expose deployment nginx --port=80 --target-port=8000

# A service for a pod
kubectl expose pod valid-pod --port=444 --name=frontend`,
  flags: FLAGS,
  async run(invocation) {
    const { args, flags, session, stdout } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    const printer = await printerOf(invocation, { operation: withDryRun('exposed', dryRun), keepOrder: true })
    await session.config()
    const { namespace, isExplicit } = await session.namespace()
    const selection = await selectFor(invocation, { args })
    await selection.visit(async ({ kind, object }) => {
      const name = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`
      if (!EXPOSABLE.has(name)) throw new KubectlError(`cannot expose a ${name}`)
      const exposed = exposedService(object as AnyObject, flags) as unknown as AnyObject
      const service = recorded(invocation, await overridden(invocation, exposed))
      if (dryRun === 'client') {
        const { name: own, ...metadata } = service.metadata
        const placed = { ...service, metadata: { ...(own !== undefined && { name: own }), namespace, ...metadata } }
        printer.print((isExplicit ? placed : service) as unknown as JsonObject, stdout)
        return
      }
      const services = await (await session.mapper()).ofObject('v1', 'Service')
      const query = { fieldManager: flags['field-manager'], ...dryRunQuery(dryRun) }
      const made = await (
        await session.rest()
      ).create({ kind: services, namespace }, withMadeConfig(service, flags['save-config']), query)
      printer.print(made as unknown as JsonObject, stdout)
    })
  },
})

const OVERRIDE_TYPES: ReadonlySet<string> = new Set(['json', 'merge', 'strategic'])

async function overridden({ flags }: ExposeInvocation, object: AnyObject): Promise<AnyObject> {
  const { overrides, 'override-type': type } = flags
  if (overrides === '') return object
  if (!OVERRIDE_TYPES.has(type)) throw new KubectlError(`invalid override type: ${type}`)
  const document: JsonValue = parseYaml(overrides)
  if (type !== 'json' && !isJsonObject(document)) throw new KubectlError('invalid overrides')
  const kind = { group: '', version: 'v1', kind: 'Service' }
  const changed = await patchedLocally(kind, object as unknown as JsonObject, { type: type as PatchType, document })
  return changed as unknown as AnyObject
}
