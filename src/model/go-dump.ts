/** Formats an object like Go's spew `%#v`, which upstream hashes: all struct fields in Go's order with their types. */
import type { FieldSchema, ProtobufMessage, ScalarSchema, Schema, StructSchema } from '#meta/schema.ts'

/** Fields whose Go name is not the capitalized JSON name. */
const GO_NAMES: ReadonlyMap<string, string> = new Map(
  (
    'metadata ObjectMeta serviceAccount DeprecatedServiceAccount apiGroup APIGroup apiVersion APIVersion uid UID ip IP gid GID ' +
    'awsElasticBlockStore AWSElasticBlockStore cephfs CephFS csi CSI dnsConfig DNSConfig dnsPolicy DNSPolicy fc FC ' +
    'chapAuthDiscovery DiscoveryCHAPAuth chapAuthSession SessionCHAPAuth diskURI DataDiskURI endpoints EndpointsName ' +
    'fsGroup FSGroup fsGroupChangePolicy FSGroupChangePolicy fsType FSType gcePersistentDisk GCEPersistentDisk ' +
    'gmsaCredentialSpec GMSACredentialSpec gmsaCredentialSpecName GMSACredentialSpecName grpc GRPC httpGet HTTPGet ' +
    'httpHeaders HTTPHeaders iqn IQN iscsi ISCSI iscsiInterface ISCSIInterface nfs NFS os OS pdName PDName rbd RBD ' +
    'seLinuxChangePolicy SELinuxChangePolicy seLinuxOptions SELinuxOptions sslEnabled SSLEnabled storageos StorageOS ' +
    'tcpSocket TCPSocket tty TTY wwids WWIDs'
  )
    .split(' ')
    .reduce<[string, string][]>((pairs, word, at, words) => {
      if (at % 2 === 0) pairs.push([word, words[at + 1] ?? ''])
      return pairs
    }, []),
)

/** The same for certain structs. */
const GO_NAMES_IN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'v1.RBDVolumeSource': { monitors: 'CephMonitors', image: 'RBDImage', pool: 'RBDPool', user: 'RadosUser' },
}

/** The value with its type in front; empty lists and maps are nil, as after protobuf. */
export function goDump(schema: Schema, value: unknown): string {
  return `(${goTypeOf(schema)})${bare(schema, value)}`
}

function goTypeOf(schema: Schema): string {
  switch (schema.type) {
    case 'list':
      return schema.goType ?? `[]${goTypeOf(schema.items)}`
    case 'map':
      return schema.goType ?? `map[string]${goTypeOf(schema.values)}`
    default:
      return schema.goType
  }
}

function bare(schema: Schema, value: unknown): string {
  switch (schema.type) {
    case 'struct':
      return structText(schema, (value ?? {}) as Fields)
    case 'list': {
      const items = (value ?? []) as unknown[]
      return items.length === 0 ? '<nil>' : `[${items.map((item) => bare(schema.items, item)).join(' ')}]`
    }
    case 'map': {
      const keys = Object.keys(value ?? {}).sort()
      const entries = keys.map((key) => `${key}:${bare(schema.values, (value as Fields)[key])}`)
      return entries.length === 0 ? '<nil>' : `map[${entries.join(' ')}]`
    }
    case 'any':
      return '{Raw:([]uint8)<nil>}'
    default:
      return scalarText(schema, value)
  }
}

type Fields = Readonly<Record<string, unknown>>

function structText(struct: StructSchema, value: Fields): string {
  return `{${members([...struct.fields.values()], struct, struct.protobuf, value).join(' ')}}`
}

/** Embedded structs, which JSON flattens, come at the position of their first field. */
function members(
  fields: readonly FieldSchema[],
  struct: StructSchema,
  message: ProtobufMessage | undefined,
  value: Fields,
): string[] {
  const embedded = (message?.fields ?? []).flatMap(({ inline }) => (inline === undefined ? [] : [inline]))
  const shown = new Set<ProtobufMessage>()
  return fields.flatMap((field) => {
    const home = embedded.find((inner) => holds(inner, field))
    if (home === undefined) return [`${goNameOf(struct, field.name)}:${fieldText(field, value[field.name])}`]
    if (shown.has(home)) return []
    shown.add(home)
    const own = fields.filter((one) => holds(home, one))
    const goType = home.goType ?? ''
    const name = goType.slice(goType.indexOf('.') + 1)
    return [`${name}:(${goType}){${members(own, struct, home, value).join(' ')}}`]
  })
}

function holds(message: ProtobufMessage, field: FieldSchema): boolean {
  return message.fields.some((one) => one.field === field || (one.inline !== undefined && holds(one.inline, field)))
}

function goNameOf(struct: StructSchema, name: string): string {
  return GO_NAMES_IN[struct.goType]?.[name] ?? GO_NAMES.get(name) ?? (name[0] ?? '').toUpperCase() + name.slice(1)
}

function fieldText({ schema, pointer }: FieldSchema, value: unknown): string {
  if (!pointer) return goDump(schema, value)
  const text = value === undefined || value === null ? '<nil>' : bare(schema, value)
  return `(*${goTypeOf(schema)})${text}`
}

function scalarText({ type }: ScalarSchema, value: unknown): string {
  switch (type) {
    case 'string':
      return (value as string | undefined) ?? ''
    case 'boolean':
      return value === true ? 'true' : 'false'
    case 'quantity':
      return quantityDump((value as string | undefined) ?? '0')
    case 'int-or-string':
      return typeof value === 'string'
        ? `{Type:(intstr.Type)1 IntVal:(int32)0 StrVal:(string)${value}}`
        : `{Type:(intstr.Type)0 IntVal:(int32)${Number(value ?? 0)} StrVal:(string)}`
    case 'time':
    case 'microtime':
      return '{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}'
    case 'bytes':
      return '<nil>'
    default:
      return String((value as number | undefined) ?? 0)
  }
}

const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }
const BINARY: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 }
const NANO = 1_000_000_000n

/** The internal form of a parsed quantity: small ones as an integer, others as a big decimal. */
function quantityDump(text: string): string {
  const [, sign = '', digits = '0', exponent, suffix = ''] = /^(-?)(\d+)(?:e(-?\d+)|([A-Za-z]*))$/.exec(text) ?? []
  if (text === '0') return quantityText(ZERO, NIL_DECIMAL, text, 'DecimalSI')
  const shift = BINARY[suffix]
  return shift === undefined
    ? decimalDump(text, sign, digits, exponent ?? String(DECIMAL[suffix] ?? 0))
    : binaryDump(text, sign, digits, shift)
}

function decimalDump(text: string, sign: string, digits: string, exponent: string): string {
  const format = /e/.test(text) ? 'DecimalExponent' : 'DecimalSI'
  const scale = Number(exponent)
  const value = BigInt(digits)
  if (digits.length <= 18 && scale >= -9) {
    const isCanonical = scale % 3 === 0 && !digits.endsWith('000') && !digits.startsWith('0')
    return quantityText(amountText(sign, value, scale), NIL_DECIMAL, isCanonical ? text : '', format)
  }
  const unscaled = scale >= 0 ? value * 10n ** BigInt(scale) * NANO : (value * NANO) / 10n ** BigInt(-scale)
  return quantityText(ZERO, decimalText(sign, unscaled), '', format)
}

function binaryDump(text: string, sign: string, digits: string, shift: number): string {
  const value = BigInt(digits) << BigInt(shift)
  const room = 15 - digits.length - Math.trunc((shift * 3) / 10) - 1
  if (room < 0) return quantityText(ZERO, decimalText(sign, value * NANO), '', 'BinarySI')
  const isCanonical = (BigInt(digits) & 7n) !== 0n
  return quantityText(amountText(sign, value, 0), NIL_DECIMAL, isCanonical ? text : '', 'BinarySI')
}

const ZERO = 'value:(int64)0 scale:(resource.Scale)0'

function amountText(sign: string, value: bigint, scale: number): string {
  return `value:(int64)${sign}${value} scale:(resource.Scale)${scale}`
}

function decimalText(sign: string, unscaled: bigint): string {
  return `{unscaled:(big.Int){neg:(bool)${sign !== ''} abs:(big.nat)[${words(unscaled).join(' ')}]} scale:(inf.Scale)9}`
}

const NIL_DECIMAL = '<nil>'

function quantityText(amount: string, decimal: string, text: string, format: string): string {
  return `{i:(resource.int64Amount){${amount}} d:(resource.infDecAmount){Dec:(*inf.Dec)${decimal}} s:(string)${text} Format:(resource.Format)${format}}`
}

function words(value: bigint): bigint[] {
  const found: bigint[] = []
  for (let rest = value; rest > 0n; rest >>= 64n) found.push(rest & 0xffff_ffff_ffff_ffffn)
  return found
}
