/** Validates network settings of a pod: DNS, host aliases, host name and the host network. */
import type { HostAlias, PodDNSConfig, PodSpec } from '#apis/core/v1.ts'
import { byteLength } from '#lib/go/text.ts'
import { validateLegacyIp } from '#meta/validation/addresses.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123SubdomainWithUnderscore } from '#meta/validation/names.ts'
import { validateDnsSubdomain } from '#meta/validation/rules.ts'

import type { PodOptions } from './rules.ts'
import { containersOf } from './walk.ts'

/** Limits of the C library's resolver. */
const MAX_NAMESERVERS = 3
const MAX_SEARCH_PATHS = 32
const MAX_SEARCH_LIST_BYTES = 2048
/** HOST_NAME_MAX of Linux. */
const MAX_HOSTNAME_BYTES = 64

export function validateDnsConfig(path: FieldPath, spec: PodSpec, options: PodOptions): FieldError[] {
  const { dnsConfig: config, dnsPolicy } = spec
  if (dnsPolicy === 'None') {
    if (config === undefined) return [path.required('must provide `dnsConfig` when `dnsPolicy` is None')]
    if ((config.nameservers ?? []).length === 0) {
      const complaint = 'must provide at least one DNS nameserver when `dnsPolicy` is None'
      return [path.child('nameservers').required(complaint)]
    }
  }
  if (config === undefined) return []
  return [
    ...validateNameservers(path.child('nameservers'), config, options),
    ...validateSearches(path.child('searches'), config),
    ...path
      .child('options')
      .each(config.options, (path, { name = '' }) => name === '' && path.required('must not be empty')),
  ]
}

function validateNameservers(
  path: FieldPath,
  { nameservers = [] }: PodDNSConfig,
  { strictIps }: PodOptions,
): FieldError[] {
  const errors =
    nameservers.length > MAX_NAMESERVERS
      ? [path.invalid(nameservers, `must not have more than ${MAX_NAMESERVERS} nameservers`)]
      : []
  return [...errors, ...path.each(nameservers, (path, ip) => validateLegacyIp(path, ip, { strict: strictIps }))]
}

function validateSearches(path: FieldPath, { searches = [] }: PodDNSConfig): FieldError[] {
  const errors: FieldError[] = []
  if (searches.length > MAX_SEARCH_PATHS) {
    errors.push(path.invalid(searches, `must not have more than ${MAX_SEARCH_PATHS} search paths`))
  }
  if (byteLength(searches.join(' ')) > MAX_SEARCH_LIST_BYTES) {
    const complaint = `must not have more than ${MAX_SEARCH_LIST_BYTES} characters (including spaces) in the search list`
    errors.push(path.invalid(searches, complaint))
  }
  for (const [at, search] of searches.entries()) {
    if (search === '.') continue
    const name = search.endsWith('.') ? search.slice(0, -1) : search
    const complaints = dns1123SubdomainWithUnderscore(name)
    errors.push(...path.index(at).check(name, () => complaints, 'format=k8s-dns-subdomain-with-underscore'))
  }
  return errors
}

export function validateHostAliases(
  path: FieldPath,
  aliases: readonly HostAlias[] = [],
  { strictIps }: PodOptions,
): FieldError[] {
  return path.each(aliases, (path, { ip, hostnames = [] }) => {
    const names = path.child('hostnames')
    return [
      ...validateLegacyIp(path.child('ip'), ip, { strict: strictIps }),
      ...names.each(hostnames, validateDnsSubdomain),
    ]
  })
}

export function validateHostnameOverride(path: FieldPath, spec: PodSpec): FieldError[] {
  const { hostnameOverride: name } = spec
  if (name === undefined) return []
  const field = path.child('hostnameOverride')
  return collectErrors(
    spec.setHostnameAsFQDN === true && field.forbidden('may not be specified when setHostnameAsFQDN is true'),
    spec.hostNetwork === true && field.forbidden('may not be specified when hostNetwork is true'),
    byteLength(name) > MAX_HOSTNAME_BYTES && field.tooLong(MAX_HOSTNAME_BYTES),
    validateDnsSubdomain(field, name),
  )
}

/** In the host network a port equals the host port; a template may leave that to the pod. */
export function validateHostNetworkPorts(path: FieldPath, spec: PodSpec, { isPod }: PodOptions): FieldError[] {
  if (spec.hostNetwork !== true) return []
  return path.child('containers').each(spec.containers, (path, { ports = [] }) => {
    const field = path.child('ports')
    return field.each(ports, (path, { hostPort = 0, containerPort }) => {
      if (hostPort === containerPort || (hostPort === 0 && !isPod)) return []
      const complaint = 'must match `containerPort` when `hostNetwork` is true'
      return [path.child('hostPort').invalid(hostPort, complaint)]
    })
  })
}

/** A user namespace excludes host namespaces, because its ids are different there. */
export function validateHostUsers(path: FieldPath, spec: PodSpec, options: PodOptions): FieldError[] {
  if (spec.hostUsers !== false) return []
  const refused = (path: FieldPath): FieldError => path.forbidden('when `hostUsers` is false')
  return collectErrors(
    spec.hostNetwork === true && !options.userNamespacesOnHostNetwork && refused(path.child('hostNetwork')),
    spec.hostPID === true && refused(path.child('HostPID')),
    spec.hostIPC === true && refused(path.child('HostIPC')),
    !options.userNamespacesWithDevices &&
      containersOf(spec, path)
        .filter(({ container }) => (container.volumeDevices ?? []).length > 0)
        .map(({ path: at }) => refused(at.child('volumeDevices'))),
  )
}
