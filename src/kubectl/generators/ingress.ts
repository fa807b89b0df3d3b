/** kubectl create ingress: parses rules of the form `host/path=service:port,tls=secret`. */
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'
import { compareText } from '#lib/go/text.ts'

import type { Command } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { beginning, defineGenerator } from './generator.ts'

const RULE = /^[\w*\-.]*\/.*=[\w-]+:[\w-]+(?:,tls=?(?:[\w-]+)?)?/

interface Backend {
  readonly service: { readonly name: string; readonly port: { readonly name?: string; readonly number?: number } }
}

interface Path {
  readonly path: string
  readonly pathType: 'Exact' | 'Prefix'
  readonly backend: Backend
}

interface Rule {
  readonly host?: string
  readonly http: { readonly paths: Path[] }
}

interface Tls {
  readonly hosts?: string[]
  readonly secretName?: string
}

export const ingress: Command = defineGenerator({
  name: 'ingress',
  aliases: ['ing'],
  use: 'NAME --rule=host/path=service:port[,tls[=secret]]  [options]',
  long: 'Create an ingress. A path that ends with * matches all paths below it.',
  failure: 'failed to create ingress: ',
  flags: {
    class: flag(string, '', 'Ingress class.'),
    rule: flag(
      stringArray,
      [],
      'Rule in the form host/path=service:port[,tls=secretname]. A path that ends with * is a prefix.',
    ),
    'default-backend': flag(string, '', 'Backend for requests that match no rule, as svcname:port.'),
    annotation: flag(stringArray, [], 'Annotation of the ingress: annotation=value.'),
  },
  make(name, { flags }) {
    const { rule, annotation, class: className, 'default-backend': backend } = flags
    check(rule, annotation, backend)
    const annotations = annotation.map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)])
    const sorted = [...new Map(annotations as [string, string][])].sort(([one], [other]) => compareText(one, other))
    const [tls, rules] = [tlsOf(rule), rulesOf(rule)]
    return {
      ...beginning('networking.k8s.io/v1', 'Ingress'),
      metadata: { name, ...(sorted.length > 0 && { annotations: Object.fromEntries(sorted) }) },
      spec: {
        ...(className !== '' && { ingressClassName: className }),
        ...(backend !== '' && { defaultBackend: backendOf(backend) }),
        ...(tls.length > 0 && { tls }),
        ...(rules.length > 0 && { rules }),
      },
      status: { loadBalancer: {} },
    }
  },
})

/** Throws KubectlError. */
function check(rules: readonly string[], annotations: readonly string[], backend: string): void {
  if (backend === '' && rules.length === 0) {
    throw new KubectlError(
      'not enough information provided: every ingress has to either specify a default-backend (which catches all traffic) or a list of rules (which catch specific paths)',
    )
  }
  const wrong = rules.find((rule) => !RULE.test(rule))
  if (wrong !== undefined) {
    throw new KubectlError(`rule ${wrong} is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]`)
  }
  const unclear = annotations.find((text) => !text.includes('='))
  if (unclear !== undefined) {
    throw new KubectlError(`annotation ${unclear} is invalid and should be in format key=[value]`)
  }
  if (backend !== '' && backend.split(':').length !== 2) {
    throw new KubectlError('default-backend should be in format servicename:serviceport')
  }
}

function backendOf(text: string): Backend {
  const [name = '', port = ''] = text.split(':')
  return { service: { name, port: /^[+-]?\d+$/.test(port) ? { number: Number(port) } : { name: port } } }
}

/** Each host occurs once, with all its paths. */
export function rulesOf(written: readonly string[]): Rule[] {
  const rules: Rule[] = []
  for (const text of written) {
    const [rule = ''] = text.split(',')
    const slash = rule.indexOf('/')
    const host = rule.slice(0, slash)
    const [path = '', service = ''] = rule.slice(slash).split('=')
    const isPrefix = path.endsWith('*')
    const entry: Path = {
      path: isPrefix ? path.slice(0, -1) : path,
      pathType: isPrefix ? 'Prefix' : 'Exact',
      backend: backendOf(service),
    }
    const known = rules.find((each) => (each.host ?? '') === host)
    if (known !== undefined) known.http.paths.push(entry)
    else rules.push({ ...(host !== '' && { host }), http: { paths: [entry] } })
  }
  return rules
}

/** Hosts with the same secret share an entry; a host uses its first secret. */
export function tlsOf(written: readonly string[]): Tls[] {
  const entries: { hosts?: string[]; secretName?: string }[] = []
  const seen = new Set<string>()
  for (const text of written) {
    const [rule = '', tls, ...more] = text.split(',')
    const host = rule.slice(0, rule.indexOf('/'))
    if (tls === undefined || more.length > 0 || seen.has(host)) continue
    seen.add(host)
    const [, secret = ''] = tls.split('=')
    const known = entries.find(({ secretName = '' }) => secretName === secret)
    if (known !== undefined) known.hosts = [...(known.hosts ?? []), host]
    else if (host !== '' || secret !== '') {
      entries.push({ ...(host !== '' && { hosts: [host] }), ...(secret !== '' && { secretName: secret }) })
    }
  }
  return entries
}
