/** Creates the pod and the service of `kubectl run`. Pure. */
import { goQuote } from '#lib/go/text.ts'

import { KubectlError } from '../errors.ts'
import type { AnyObject } from '../session/rest.ts'

export interface RunOptions {
  readonly name: string
  readonly image: string
  readonly pullPolicy: string
  readonly args: readonly string[]
  /** The arguments replace the command instead of the args. */
  readonly isCommand: boolean
  readonly env: readonly string[]
  readonly labels: string
  readonly annotations: readonly string[]
  readonly port: string
  readonly stdin: boolean
  readonly stdinOnce: boolean
  readonly tty: boolean
  readonly isPrivileged: boolean
  readonly restartPolicy: string
}

/** Fields in the order of upstream's types. Throws KubectlError. */
export function runPod(options: RunOptions): AnyObject {
  const { name, image, args, isCommand, env, port, pullPolicy } = options
  const annotations = pairsIn(options.annotations, 'annotation')
  const variables = env.map(variableOf)
  const labels = labelsOf(options)
  const container = {
    name,
    image,
    ...(args.length > 0 && (isCommand ? { command: args } : { args })),
    ...(port !== '' && { ports: [{ containerPort: portIn(port) }] }),
    ...(variables.length > 0 && { env: variables }),
    resources: {},
    ...(pullPolicy !== '' && { imagePullPolicy: pullPolicy }),
    ...(options.isPrivileged && { securityContext: { privileged: true } }),
    ...(options.stdin && { stdin: true }),
    ...(options.stdinOnce && { stdinOnce: true }),
    ...(options.tty && { tty: true }),
  }
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name, labels, ...(Object.keys(annotations).length > 0 && { annotations }) },
    spec: { containers: [container], restartPolicy: options.restartPolicy, dnsPolicy: 'ClusterFirst' },
    status: {},
  }
}

/** Throws KubectlError. */
export function runService(options: RunOptions): AnyObject {
  const port = portIn(options.port)
  const given = options.labels === '' ? undefined : labelsOf(options)
  return {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: { name: options.name, ...(given !== undefined && { labels: given }) },
    spec: {
      ports: [{ protocol: 'TCP', port, targetPort: port }],
      selector: given ?? { run: options.name },
    },
    status: { loadBalancer: {} },
  }
}

function labelsOf({ labels, name }: RunOptions): Record<string, string> {
  if (labels === '') return { run: name }
  const found: Record<string, string> = {}
  for (const pair of labels.split(',')) {
    const parts = pair.split('=')
    if (parts.length !== 2) throw new KubectlError(`unexpected label spec: ${pair}`)
    const [key = '', value = ''] = parts
    if (key === '') throw new KubectlError(`unexpected empty label key`)
    found[key] = value
  }
  return found
}

function portIn(text: string): number {
  if (/^[+-]?\d+$/.test(text)) return Number(text)
  throw new KubectlError(`strconv.Atoi: parsing ${goQuote(text)}: invalid syntax`)
}

function variableOf(text: string): { readonly name: string; readonly value: string } {
  const at = text.indexOf('=')
  if (at <= 0) throw new KubectlError(`invalid env: ${text}`)
  const name = text.slice(0, at)
  if (!/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(name)) throw new KubectlError(`invalid env: ${text}`)
  return { name, value: text.slice(at + 1) }
}

function pairsIn(texts: readonly string[], what: string): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=')
      if (at <= 0) throw new KubectlError(`invalid ${what} format: ${text}`)
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )
}

const REFERENCE =
  /^(?:(?:[\w](?:[\w-]*\w)?(?:\.\w(?:[\w-]*\w)?)*|\[[a-fA-F\d:]+\])(?::\d+)?\/)?[a-z\d]+(?:(?:\.|_|__|-+)[a-z\d]+)*(?:\/[a-z\d]+(?:(?:\.|_|__|-+)[a-z\d]+)*)*(?::\w[\w.-]{0,127})?(?:@[A-Za-z][A-Za-z\d]*(?:[-_+.][A-Za-z][A-Za-z\d]*)*:[\da-fA-F]{32,})?$/

/** True for a valid image name. */
export function isImageName(text: string): boolean {
  return REFERENCE.test(text)
}
