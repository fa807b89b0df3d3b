/** kubectl expose: creates a service for an existing workload. */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'

import { withMadeConfig } from '../apply/last-applied.ts'
import { selectFor } from '../builder/selection.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { EXPOSABLE, exposedService } from '../expose/exposed-service.ts'
import { DRY_RUN_FLAG, dryRunOf, dryRunQuery, fieldManagerFlag, fileFlags, withDryRun } from '../flag-sets.ts'
import { patchedLocally } from '../manifests/local-patch.ts'
import { printerOf, printFlags } from '../printing.ts'
import { RECORD_FLAG, recorded } from '../recording.ts'
import type { AnyObject, PatchType } from '../session/rest.ts'

const FLAGS = {
  ...printFlags(),
  ...fileFlags('identifying the resource to expose a service'),
  ...DRY_RUN_FLAG,
  ...RECORD_FLAG,
  ...fieldManagerFlag('kubectl-expose'),
  'cluster-ip': flag(
    string,
    '',
    "Cluster IP of the service. If empty, the server allocates one. 'None' creates a headless service.",
  ),
  'external-ip': flag(
    string,
    '',
    'An additional IP address, not managed by Kubernetes, at which the service accepts traffic.',
  ),
  labels: flag(string, '', 'Labels of the new service.', { shorthand: 'l' }),
  'load-balancer-ip': flag(string, '', 'IP address of the load balancer. If empty, the provider allocates one.'),
  name: flag(string, '', 'Name of the new object.'),
  'override-type': flag(string, 'merge', 'How --overrides is applied: json, merge or strategic.'),
  overrides: flag(string, '', 'JSON that overrides fields of the generated object; it must contain an apiVersion.'),
  port: flag(string, '', 'Port of the service. If empty, use the port of the workload.'),
  protocol: flag(string, '', "The protocol of the service. Default is 'TCP'."),
  'save-config': flag(bool, false, 'Save the configuration in an annotation for kubectl apply.'),
  selector: flag(
    string,
    '',
    'Label selector of the service, as key=value. If empty, use the selector of the workload.',
  ),
  'session-affinity': flag(string, '', "Session affinity of the service: 'None' or 'ClientIP'."),
  'target-port': flag(string, '', 'Name or number of the container port that receives the traffic.'),
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
  long: 'Expose a pod, service, replication controller, deployment or replica set as a new service. The service takes the selector of the workload if it consists of equalities only.',
  examples: `# Create a service for a deployment on port 80, with target port 8000
kubectl expose deployment nginx --port=80 --target-port=8000

# Create a service for a pod
kubectl expose pod valid-pod --port=444 --name=frontend`,
  flags: FLAGS,
  completes: { resources: ['pod', 'service', 'replicationcontroller', 'deployment', 'replicaset'] },
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
