/** StorageVersion: in which version each API server writes the objects of one resource, and which ones it can read. */
import {
  type ServerStorageVersion,
  type StorageVersion,
  type StorageVersionCondition,
  StorageVersions,
  type StorageVersionStatus,
} from '#apis/apiserverinternal/v1alpha1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { child, duplicate, type FieldError, index, invalid, required } from '#meta/validation/field-error.ts'
import { dns1035Label, dns1123Subdomain, emptyText, regexText } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'
import { validateQualifiedName } from '#model/pod-spec/checks.ts'

const SHOWN_SERVERS = 3

export const storageVersion: Resource<StorageVersion> = defineResource<StorageVersion>({
  kind: StorageVersions,
  nameRule: nameComplaints,
  metadataRules: { update: [], part: [] },
  // There is nothing in the spec, and the status has its own way in.
  validateUpdate: () => [],
  status: { validateUpdate: ({ status }) => validateStatus(status) },
  columns: [
    nameColumn,
    { name: 'CommonEncodingVersion', value: ({ status }) => status?.commonEncodingVersion ?? '<unset>' },
    { name: 'StorageVersions', value: ({ status }) => serversText(status?.storageVersions) },
    ageColumn,
  ],
  putNeedsVersion: true,
})

/** `<group>.<resource>`, with `core` for the group that has no name. */
function nameComplaints(name: string): string[] {
  const dot = name.lastIndexOf('.')
  if (dot < 0) return ['name must be in the form of <group>.<resource>']
  return [
    ...dns1123Subdomain(name.slice(0, dot)).map((complaint) => `the group segment ${complaint}`),
    ...dns1035Label(name.slice(dot + 1)).map((complaint) => `the resource segment ${complaint}`),
  ]
}

function serversText(servers: readonly ServerStorageVersion[] = []): string {
  if (servers.length === 0) return '<unset>'
  const shown = servers
    .slice(0, SHOWN_SERVERS)
    .map(({ apiServerID = '', encodingVersion = '' }) => `${apiServerID}=${encodingVersion}`)
  const more = servers.length - SHOWN_SERVERS
  return more > 0 ? `${shown.join(',')} + ${more} more...` : shown.join(',')
}

function validateStatus({ storageVersions: servers = [], ...rest }: StorageVersionStatus = {}): FieldError[] {
  const seen = new Set<string>()
  return [
    ...servers.flatMap((server, at) => {
      const path = index('status.storageVersions', at)
      const { apiServerID: id = '' } = server
      const repeated = seen.has(id) ? [duplicate(child(path, 'apiServerID'), id)] : []
      seen.add(id)
      return [...repeated, ...validateServer(path, server)]
    }),
    ...validateCommonVersion(servers, rest.commonEncodingVersion),
    ...validateConditions(rest.conditions),
  ]
}

function validateServer(path: string, server: ServerStorageVersion): FieldError[] {
  const { apiServerID = '', encodingVersion = '', decodableVersions, servedVersions = [] } = server
  const decodable = decodableVersions ?? []
  const validateVersion = (field: string, version: string): FieldError[] => {
    const complaints = apiVersionComplaints(version)
    return complaints.length === 0 ? [] : [invalid(field, version, complaints.join(','))]
  }
  const [decodableField, servedField] = ['decodableVersions', 'servedVersions'].map((name) => child(path, name)) as [
    string,
    string,
  ]
  return [
    ...complaining(child(path, 'apiServerID'), apiServerID, dns1123Subdomain(apiServerID)),
    ...validateVersion(child(path, 'encodingVersion'), encodingVersion),
    ...decodable.flatMap((version, at) => validateVersion(index(decodableField, at), version)),
    ...(decodable.includes(encodingVersion)
      ? []
      : [
          invalid(
            decodableField,
            decodableVersions ?? null,
            `decodableVersions must include encodingVersion ${encodingVersion}`,
          ),
        ]),
    ...servedVersions.flatMap((version, at) => [
      ...validateVersion(index(servedField, at), version),
      ...(decodable.includes(version)
        ? []
        : [
            invalid(
              index(servedField, at),
              version,
              `individual served version : ${version} must be included in decodableVersions : [${decodable.join(' ')}]`,
            ),
          ]),
    ]),
  ]
}

/** What all servers write; nothing while they differ or none has reported. */
function validateCommonVersion(servers: readonly ServerStorageVersion[], said: string | undefined): FieldError[] {
  const versions = new Set(servers.map(({ encodingVersion = '' }) => encodingVersion))
  const actual = versions.size === 1 ? [...versions][0] : undefined
  if (actual === said) return []
  const field = 'status.commonEncodingVersion'
  if (actual === undefined) {
    const detail =
      'should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet'
    return [invalid(field, said, detail)]
  }
  return said === undefined
    ? [invalid(field, null, `the common encoding version is ${actual}`)]
    : [invalid(field, said, `the actual common encoding version is ${actual}`)]
}

/** Upstream leaves `conditions` out of the paths. */
function validateConditions(conditions: readonly StorageVersionCondition[] = []): FieldError[] {
  const seen = new Map<string, number>()
  return conditions.flatMap(({ type, status, reason, message = '' }, at) => {
    const path = index('status', at)
    const first = seen.get(type)
    seen.set(type, at)
    const detail = `the type of the condition is not unique, it also appears in conditions[${first}]`
    return [
      ...(first === undefined ? [] : [invalid(child(path, 'type'), type, detail)]),
      ...validateQualifiedName(child(path, 'type'), type),
      ...validateQualifiedName(child(path, 'status'), status),
      ...(reason === '' ? [required(child(path, 'reason'))] : []),
      ...(message === '' ? [required(child(path, 'message'))] : []),
    ]
  })
}

const labelRule = regexText(
  "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  '[a-z]([-a-z0-9]*[a-z0-9])?',
  'my-name',
  'abc-123',
)

/** `v1` or `apps/v1`. */
function apiVersionComplaints(text: string): string[] {
  const parts = text.split('/')
  if (parts.length > 2) {
    return [
      `an apiVersion is ${labelRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')`,
    ]
  }
  const [group, version] = parts.length === 2 ? parts : [undefined, text]
  const judge = (what: string, value: string, check: (text: string) => string[]): string[] =>
    (value === '' ? [emptyText()] : check(value)).map((complaint) => `${what} part: ${complaint}`)
  return [
    ...(group === undefined ? [] : judge('group', group, dns1123Subdomain)),
    ...judge('version', version ?? '', dns1035Label),
  ]
}
