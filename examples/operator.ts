/**
 * An operator in TypeScript: each Greeting gets a ConfigMap with its text, and says so in its status and in events. Run it
 * beside any cluster, with the Greetings of greeting.yaml: `node examples/operator.ts`
 */
import { ConfigMaps } from 'hyperkube/apis/core/v1'
import {
  connect,
  controllerRef,
  defineKind,
  EventRecorder,
  hasFinalizer,
  isBeingDeleted,
  isNotFound,
  type KubeObject,
  runOperator,
} from 'hyperkube/client'

interface Greeting extends KubeObject {
  spec: { name?: string }
  status?: { observedGeneration: number; configMap: string }
}

const Greetings = defineKind<Greeting>({ group: 'example.com', version: 'v1', kind: 'Greeting', plural: 'greetings' })
const FINALIZER = 'example.com/farewell'
const MANAGER = 'greeting-operator'

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort())

await using connected = await connect({ userAgent: `${MANAGER}/v1` })
const { client } = connected
const events = new EventRecorder({ client, source: { component: MANAGER } })

await runOperator({ client, kind: Greetings, owns: [ConfigMaps], reconcile, onError: console.error }, stop.signal)
await events.flush()

async function reconcile(greeting: Greeting): Promise<void> {
  const { namespace = '', name = '', generation = 0, finalizers = [] } = greeting.metadata
  const made = { namespace, name: `${name}-greeting` }
  if (isBeingDeleted(greeting)) {
    // Deletes the ConfigMap first, then allows the deletion of the Greeting.
    await client.delete(ConfigMaps, made).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
    tell(greeting, 'SaidFarewell', `Took back ${made.name}`)
    return keep(
      greeting,
      finalizers.filter((one) => one !== FINALIZER),
    )
  }
  if (!hasFinalizer(greeting, FINALIZER)) return keep(greeting, [...finalizers, FINALIZER])
  const metadata = { ...made, ownerReferences: [controllerRef(greeting, Greetings)] }
  const data = { text: `Hello, ${greeting.spec.name ?? 'nobody'}!` }
  await client.apply(ConfigMaps, { metadata, data }, { fieldManager: MANAGER, force: true })
  if (greeting.status?.observedGeneration === generation) return
  const status = { observedGeneration: generation, configMap: made.name }
  await client.patch(Greetings, { namespace, name, subresource: 'status' }, { type: 'merge', value: { status } })
  tell(greeting, 'Greeted', `Said "${data.text}" in ${made.name}`)
}

/** Fails with a conflict if another client has changed the object; then the operator reconciles again. */
async function keep(greeting: Greeting, finalizers: string[]): Promise<void> {
  await client.update(Greetings, { ...greeting, metadata: { ...greeting.metadata, finalizers } })
}

function tell(greeting: Greeting, reason: string, message: string): void {
  events.record(greeting, { type: 'Normal', reason, message })
}
