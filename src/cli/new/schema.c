// cardan schema: the JSON schema of system descriptions, for editors.
#include "cli/new/schema.h"

#include "cli/cli.h"

#include <string.h>

typedef struct schema_options {
    crdi_common common;
    const char* output;
} schema_options;

static crd_status run_schema(crdi_cli* cli, const void* options, const crdi_list* arguments,
                             crdi_result* out)
{
    (void)arguments;
    (void)out;
    const schema_options* o = options;
    if (o->output && strcmp(o->output, "-") != 0) {
        crd_text text;
        crd_text_init(&text, cli->ctx);
        crdi_text_put(&text, crdi_schema.data, crdi_schema.length);
        const crd_status st = crdi_file_write(cli->ctx, o->output, &text);
        crd_text_clear(&text);
        return st;
    }
    fwrite(crdi_schema.data, 1, crdi_schema.length, stdout);
    return crdi_stdout_done(cli->ctx);
}

static const crdi_option rows[] = {
    OPT_FILE(schema_options, output, "output", "json",
             "file to write; standard output unless given", .short_name = 'o'),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_schema = {
    .name = "schema",
    .arguments = "",
    .summary = "the JSON schema of system descriptions, for editors",
    .description =
        "Writes the JSON schema of system descriptions. An editor that knows yaml-language-server "
        "(Visual Studio Code with the YAML extension, Neovim, Emacs ...) completes keys and marks "
        "mistakes with it, if the first line of the description names it: # yaml-language-server: "
        "$schema=cardan.schema.json. 'cardan new' writes that line.",
    .examples = {{"cardan schema -o cardan.schema.json", "beside the description"}},
    OPTIONS(rows, schema_options),
    .run = run_schema,
};
