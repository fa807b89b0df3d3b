/** How a pod is named and finds names: DNS, aliases of hosts, its own host name, and the network of its node. */
import type { HostAlias, PodDNSConfig, PodSpec } from '#apis/core/v1.ts'
import { byteLength } from '#lib/go-text.ts'
import { validateLegacyIp } from '#meta/validation/addresses.ts'
import { child, type FieldError, forbidden, index, invalid, required, tooLong } from '#meta/validation/field-error.ts'
import { dns1123SubdomainWithUnderscore } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

import { validateDnsSubdomain } from './checks.ts'
import type { PodOptions } from './rules.ts'
import { containersOf } from './walk.ts'

/** Limits of the C library's resolver. */
const MAX_NAMESERVERS = 3
const MAX_SEARCH_PATHS = 32
const MAX_SEARCH_LIST_BYTES = 2048
/** HOST_NAME_MAX of Linux. */
const MAX_HOSTNAME_BYTES = 64

export function validateDnsConfig(path: string, spec: PodSpec, options: PodOptions): FieldError[] {
  const { dnsConfig: config, dnsPolicy } = spec
  if (dnsPolicy === 'None') {
    if (config === undefined) return [required(path, 'must provide `dnsConfig` when `dnsPolicy` is None')]
    if ((config.nameservers ?? []).length === 0) {
      const complaint = 'must provide at least one DNS nameserver when `dnsPolicy` is None'
      return [required(child(path, 'nameservers'), complaint)]
    }
  }
  if (config === undefined) return []
  return [
    ...validateNameservers(child(path, 'nameservers'), config, options),
    ...validateSearches(child(path, 'searches'), config),
    ...(config.options ?? []).flatMap(({ name = '' }, at) =>
      name === '' ? [required(index(child(path, 'options'), at), 'must not be empty')] : [],
    ),
  ]
}

function validateNameservers(
  field: string,
  { nameservers = [] }: PodDNSConfig,
  { strictIps }: PodOptions,
): FieldError[] {
  const errors =
    nameservers.length > MAX_NAMESERVERS
      ? [invalid(field, nameservers, `must not have more than ${MAX_NAMESERVERS} nameservers`)]
      : []
  return [...errors, ...nameservers.flatMap((ip, at) => validateLegacyIp(index(field, at), ip, { strict: strictIps }))]
}

function validateSearches(field: string, { searches = [] }: PodDNSConfig): FieldError[] {
  const errors: FieldError[] = []
  if (searches.length > MAX_SEARCH_PATHS) {
    errors.push(invalid(field, searches, `must not have more than ${MAX_SEARCH_PATHS} search paths`))
  }
  if (byteLength(searches.join(' ')) > MAX_SEARCH_LIST_BYTES) {
    const complaint = `must not have more than ${MAX_SEARCH_LIST_BYTES} characters (including spaces) in the search list`
    errors.push(invalid(field, searches, complaint))
  }
  for (const [at, search] of searches.entries()) {
    if (search === '.') continue
    const name = search.endsWith('.') ? search.slice(0, -1) : search
    const complaints = dns1123SubdomainWithUnderscore(name)
    errors.push(...complaining(index(field, at), name, complaints, 'format=k8s-dns-subdomain-with-underscore'))
  }
  return errors
}

export function validateHostAliases(
  field: string,
  aliases: readonly HostAlias[] = [],
  { strictIps }: PodOptions,
): FieldError[] {
  return aliases.flatMap(({ ip, hostnames = [] }, at) => {
    const path = index(field, at)
    const names = child(path, 'hostnames')
    return [
      ...validateLegacyIp(child(path, 'ip'), ip, { strict: strictIps }),
      ...hostnames.flatMap((name, nameAt) => validateDnsSubdomain(index(names, nameAt), name)),
    ]
  })
}

export function validateHostnameOverride(path: string, spec: PodSpec): FieldError[] {
  const { hostnameOverride: name } = spec
  if (name === undefined) return []
  const field = child(path, 'hostnameOverride')
  const errors: FieldError[] = []
  if (spec.setHostnameAsFQDN === true) {
    errors.push(forbidden(field, 'may not be specified when setHostnameAsFQDN is true'))
  }
  if (spec.hostNetwork === true) errors.push(forbidden(field, 'may not be specified when hostNetwork is true'))
  if (byteLength(name) > MAX_HOSTNAME_BYTES) errors.push(tooLong(field, MAX_HOSTNAME_BYTES))
  return [...errors, ...validateDnsSubdomain(field, name)]
}

/** On the host's network a port is the host's port; a template may leave it to the pod to say so. */
export function validateHostNetworkPorts(path: string, spec: PodSpec, { isPod }: PodOptions): FieldError[] {
  if (spec.hostNetwork !== true) return []
  return (spec.containers ?? []).flatMap(({ ports = [] }, at) => {
    const field = child(index(child(path, 'containers'), at), 'ports')
    return ports.flatMap(({ hostPort = 0, containerPort }, portAt) => {
      if (hostPort === containerPort || (hostPort === 0 && !isPod)) return []
      const complaint = 'must match `containerPort` when `hostNetwork` is true'
      return [invalid(child(index(field, portAt), 'hostPort'), hostPort, complaint)]
    })
  })
}

/** Users of its own: then no namespace of the host, whose ids would be somebody else's. */
export function validateHostUsers(path: string, spec: PodSpec, options: PodOptions): FieldError[] {
  if (spec.hostUsers !== false) return []
  const refused = (field: string): FieldError => forbidden(field, 'when `hostUsers` is false')
  return [
    ...(spec.hostNetwork === true && !options.userNamespacesOnHostNetwork ? [refused(child(path, 'hostNetwork'))] : []),
    ...(spec.hostPID === true ? [refused(child(path, 'HostPID'))] : []),
    ...(spec.hostIPC === true ? [refused(child(path, 'HostIPC'))] : []),
    ...(options.userNamespacesWithDevices
      ? []
      : containersOf(spec, path)
          .filter(({ container }) => (container.volumeDevices ?? []).length > 0)
          .map(({ path: at }) => refused(child(at, 'volumeDevices')))),
  ]
}
