/** The StorageVersion resource: the versions that each API server encodes and decodes for one resource. */
import {
  type ServerStorageVersion,
  type StorageVersion,
  type StorageVersionCondition,
  StorageVersions,
  type StorageVersionStatus,
} from '#apis/apiserverinternal/v1alpha1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { createRepetition } from '#lib/repetition.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1035Label, dns1123Subdomain, emptyText, regexText } from '#meta/validation/names.ts'
import { validateQualifiedName } from '#meta/validation/rules.ts'

const SHOWN_SERVERS = 3

export const storageVersion: Resource<StorageVersion> = defineResource<StorageVersion>({
  kind: StorageVersions,
  nameRule: nameComplaints,
  metadataRules: { update: [], part: [] },
  // The spec is empty, and the status is a subresource.
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

/** `<group>.<resource>`, with `core` for the core group. */
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
  const isRepeated = createRepetition()
  return [
    ...fieldPath('status.storageVersions').each(servers, (path, server) => {
      const { apiServerID: id = '' } = server
      const repeated = isRepeated(id) ? [path.child('apiServerID').duplicate(id)] : []
      return [...repeated, ...validateServer(path, server)]
    }),
    ...validateCommonVersion(servers, rest.commonEncodingVersion),
    ...validateConditions(rest.conditions),
  ]
}

function validateServer(path: FieldPath, server: ServerStorageVersion): FieldError[] {
  const { apiServerID = '', encodingVersion = '', decodableVersions, servedVersions = [] } = server
  const decodable = decodableVersions ?? []
  const validateVersion = (path: FieldPath, version: string): FieldError[] => {
    const complaints = apiVersionComplaints(version)
    return complaints.length === 0 ? [] : [path.invalid(version, complaints.join(','))]
  }
  const decodablePath = path.child('decodableVersions')
  const servedPath = path.child('servedVersions')
  return collectErrors(
    path.child('apiServerID').check(apiServerID, dns1123Subdomain),
    validateVersion(path.child('encodingVersion'), encodingVersion),
    decodablePath.each(decodable, validateVersion),
    !decodable.includes(encodingVersion) &&
      decodablePath.invalid(
        decodableVersions ?? null,
        `decodableVersions must include encodingVersion ${encodingVersion}`,
      ),
    servedPath.each(servedVersions, (path, version) =>
      collectErrors(
        validateVersion(path, version),
        !decodable.includes(version) &&
          path.invalid(
            version,
            `individual served version : ${version} must be included in decodableVersions : [${decodable.join(' ')}]`,
          ),
      ),
    ),
  )
}

/** The version that all servers encode; undefined while they differ or none has reported. */
function validateCommonVersion(
  servers: readonly ServerStorageVersion[],
  commonVersion: string | undefined,
): FieldError[] {
  const versions = new Set(servers.map(({ encodingVersion = '' }) => encodingVersion))
  const actual = versions.size === 1 ? [...versions][0] : undefined
  if (actual === commonVersion) return []
  const field = fieldPath('status.commonEncodingVersion')
  if (actual === undefined) {
    const detail =
      'should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet'
    return [field.invalid(commonVersion, detail)]
  }
  return commonVersion === undefined
    ? [field.invalid(null, `the common encoding version is ${actual}`)]
    : [field.invalid(commonVersion, `the actual common encoding version is ${actual}`)]
}

/** Upstream omits `conditions` from the paths. */
function validateConditions(conditions: readonly StorageVersionCondition[] = []): FieldError[] {
  const seen = new Map<string, number>()
  return fieldPath('status').each(conditions, (path, { type, status, reason, message = '' }, at) => {
    const first = seen.get(type)
    seen.set(type, at)
    const detail = `the type of the condition is not unique, it also appears in conditions[${first}]`
    return collectErrors(
      first !== undefined && path.child('type').invalid(type, detail),
      validateQualifiedName(path.child('type'), type),
      validateQualifiedName(path.child('status'), status),
      reason === '' && path.child('reason').required(),
      message === '' && path.child('message').required(),
    )
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
  const validatePart = (what: string, value: string, check: (text: string) => string[]): string[] =>
    (value === '' ? [emptyText()] : check(value)).map((complaint) => `${what} part: ${complaint}`)
  return [
    ...(group === undefined ? [] : validatePart('group', group, dns1123Subdomain)),
    ...validatePart('version', version ?? '', dns1035Label),
  ]
}
