/** What drivers of devices are asked on a node: `DRAPlugin`, v1 and v1beta1 alike but for their names. */
import { defineMethod, type Method } from '#lib/grpc/method.ts'
import { defineMessage, type Field, type Input, type Message, type MessageOf } from '#lib/protobuf/message.ts'

const message = <const F extends Readonly<Record<string, Field>>>(fields: F): Message<MessageOf<F>> =>
  defineMessage(fields)

export interface ClaimRef {
  readonly namespace: string
  readonly uid: string
  readonly name: string
}

export interface PreparedDevice {
  /** Of the claim; empty: all. */
  readonly requestNames: string[]
  readonly poolName: string
  readonly deviceName: string
  readonly cdiDeviceIds: string[]
  readonly shareId: string | undefined
}

interface Claims {
  readonly claims: ClaimRef[]
}

interface Prepared {
  readonly claims: Map<string, { readonly devices: PreparedDevice[]; readonly error: string }>
}

interface Unprepared {
  readonly claims: Map<string, { readonly error: string }>
}

type Unary<Q, R> = Method<Q, Input<Q>, R, Input<R>>

export interface DraMethods {
  readonly prepare: Unary<Claims, Prepared>
  readonly unprepare: Unary<Claims, Unprepared>
}

const claims: Message<Claims> = message({
  claims: [1, message({ namespace: [1, 'string'], uid: [2, 'string'], name: [3, 'string'] }), 'repeated'],
})
const device: Message<PreparedDevice> = message({
  requestNames: [1, 'string', 'repeated'],
  poolName: [2, 'string'],
  deviceName: [3, 'string'],
  cdiDeviceIds: [4, 'string', 'repeated'],
  shareId: [5, 'string', 'optional'],
})
const prepared: Message<Prepared> = message({
  claims: [1, { key: 'string', value: message({ devices: [1, device, 'repeated'], error: [2, 'string'] }) }],
})
const unprepared: Message<Unprepared> = message({
  claims: [1, { key: 'string', value: message({ error: [1, 'string'] }) }],
})

const methodsOf = (service: string): DraMethods => ({
  prepare: defineMethod(`/${service}/NodePrepareResources`, claims, prepared),
  unprepare: defineMethod(`/${service}/NodeUnprepareResources`, claims, unprepared),
})

/** By what plugins say to support, the newest first. */
export const DRA_SERVICES: readonly (readonly [version: string, methods: DraMethods])[] = [
  ['v1.DRAPlugin', methodsOf('k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin')],
  ['v1beta1.DRAPlugin', methodsOf('k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin')],
]
