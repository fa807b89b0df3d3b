/** Selects the Ingresses that this controller serves, with the class rules of ingress-nginx. Pure. */
import type { Ingress, IngressClass } from '#apis/networking/v1.ts'

export interface ClassRule {
  /** `spec.controller` of our IngressClasses. */
  readonly controller: string
  /** The value of the deprecated annotation, and the class name used before the IngressClass exists. */
  readonly className: string
  /** Whether Ingresses without a class are ours. */
  readonly takesUnclassed: boolean
}

const ANNOTATION = 'kubernetes.io/ingress.class'

/** The annotation takes precedence over the field, as before the field existed. */
export function isOurs(
  { metadata, spec }: Ingress,
  classOf: (name: string) => IngressClass | undefined,
  { controller, className, takesUnclassed }: ClassRule,
): boolean {
  const annotated = metadata.annotations?.[ANNOTATION]
  if (annotated !== undefined && annotated !== '') return annotated === className
  const { ingressClassName: named } = spec
  if (named === undefined || named === '') return takesUnclassed
  const found = classOf(named)
  return found === undefined ? false : found.spec.controller === controller
}
