/** Tests the operator in `examples/` as a separate process with a real API server. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { ConfigMaps, Events } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { connect, type Connected } from '#client/connection/connect.ts'
import { defineKind } from '#client/custom-kind.ts'
import { until } from '#client/until.ts'
import { parseYamlAll } from '#lib/yaml/yaml.ts'
import type { KubeObject } from '#meta/object.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

interface Greeting extends KubeObject {
  spec: { name?: string }
  status?: { observedGeneration?: number; configMap?: string }
}

const Greetings = defineKind<Greeting>({ group: 'example.com', version: 'v1', kind: 'Greeting', plural: 'greetings' })
const ROOT = join(import.meta.dirname, '..', '..', '..')
const namespace = 'default'
const timeoutMs = 60_000

let plane: ControlPlane
let folder: string
let connected: Connected
let client: ApiClient
let operator: ChildProcess
let said = ''

before(async () => {
  plane = await startControlPlane()
  folder = await mkdtemp(join(tmpdir(), 'operator-'))
  const kubeconfig = join(folder, 'config')
  await writeFile(kubeconfig, plane.kubeconfig)
  connected = await connect({ userAgent: 'tester/v1', kubeconfig })
  client = connected.client
  const [definition, greeting] = parseYamlAll(await readFile(join(ROOT, 'examples/greeting.yaml'), 'utf8'))
  await client.create(CustomResourceDefinitions, definition as never)
  await until({ client, kind: CustomResourceDefinitions, name: 'greetings.example.com', timeoutMs }, (one) =>
    Boolean(one?.status.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')),
  )
  await client.create(Greetings, greeting as never)
  const args = ['--conditions=hyperkube-source', join(ROOT, 'examples/operator.ts')]
  operator = spawn(process.execPath, args, {
    env: { ...process.env, KUBECONFIG: kubeconfig },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  operator.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
})

after(async () => {
  if (operator.exitCode === null) operator.kill('SIGKILL')
  connected.close()
  await plane.stop()
  await rm(folder, { recursive: true })
})

const textOf = async (isSo: (text: string | undefined) => boolean): Promise<string | undefined> => {
  const where = { client, kind: ConfigMaps, namespace, name: 'hello-greeting', timeoutMs }
  return (await until(where, (one) => isSo(one?.data?.['text'])))?.data?.['text']
}

describe('example operator', () => {
  it('has at most 80 lines', async () => {
    assert.ok((await readFile(join(ROOT, 'examples/operator.ts'), 'utf8')).split('\n').length <= 80)
  })

  it('creates a ConfigMap for a custom resource, and reports that in status and event', async () => {
    assert.equal(await textOf((text) => text !== undefined), 'Hello, world!')
    const greeting = await until(
      { client, kind: Greetings, namespace, name: 'hello', timeoutMs },
      (one) => one?.status?.observedGeneration === 1,
    )
    assert.deepEqual(greeting?.status, { observedGeneration: 1, configMap: 'hello-greeting' })
    assert.deepEqual(greeting.metadata.finalizers, ['example.com/farewell'])
    const { metadata } = await client.get(ConfigMaps, { namespace, name: 'hello-greeting' })
    assert.deepEqual(
      metadata.ownerReferences?.map(({ kind, name, controller }) => [kind, name, controller]),
      [['Greeting', 'hello', true]],
    )
    assert.deepEqual(
      metadata.managedFields?.map(({ manager, operation }) => [manager, operation]),
      [['greeting-operator', 'Apply']],
    )
  })

  it('repairs foreign changes and deletions of the ConfigMap', async () => {
    const where = { namespace, name: 'hello-greeting' }
    await client.patch(ConfigMaps, where, { type: 'merge', value: { data: { text: 'Go away!' } } })
    await textOf((text) => text === 'Hello, world!')
    await client.delete(ConfigMaps, where)
    await textOf((text) => text === 'Hello, world!')
  })

  it('updates the ConfigMap if the spec changes', async () => {
    await client.patch(Greetings, { namespace, name: 'hello' }, { type: 'merge', value: { spec: { name: 'moon' } } })
    await textOf((text) => text === 'Hello, moon!')
    await until(
      { client, kind: Greetings, namespace, name: 'hello', timeoutMs },
      (one) => one?.status?.observedGeneration === 2,
    )
  })

  it('deletes the ConfigMap before the custom resource', async () => {
    await client.delete(Greetings, { namespace, name: 'hello' })
    await until({ client, kind: Greetings, namespace, name: 'hello', timeoutMs }, (one) => one === undefined)
    const { items } = await client.list(ConfigMaps, { namespace, fieldSelector: 'metadata.name=hello-greeting' })
    assert.deepEqual(items, [])
  })

  it('exits on a signal after all events are written', async () => {
    operator.kill('SIGTERM')
    const [code] = (await once(operator, 'exit')) as [number | null]
    assert.deepEqual([code, said.replaceAll(/^.*(?:Conflict|modified)[\s\S]*?\n}\n/gm, '')], [0, ''])
    const { items } = await client.list(Events, { namespace })
    const events = items.map(({ reason, message, source }) => `${source?.component} ${reason}: ${message}`)
    assert.deepEqual([...new Set(events)].sort(), [
      'greeting-operator Greeted: Said "Hello, moon!" in hello-greeting',
      'greeting-operator Greeted: Said "Hello, world!" in hello-greeting',
      'greeting-operator SaidFarewell: Took back hello-greeting',
    ])
  })
})
