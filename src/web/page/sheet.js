// A picture that grows: asked for once a second, taken when it is another one.
import { token } from "./ask.js";
import { $, say, show } from "./dom.js";

const query = "?token=" + encodeURIComponent(token);
let number = 0, title = "";

async function look() {
    try {
        const answer = await fetch("/sheet.json" + query);
        if (!answer.ok) {
            say($("line"), "The token in the address is not that of this study. Open the address that the command has printed.");
            return;
        }
        const about = await answer.json();
        title = about.title || title;
        say($("title"), title || "Cardan");
        document.title = title || "Cardan";
        say($("line"), about.line || "Nothing is done yet.");
        if (about.number !== number) {
            number = about.number;
            $("picture").src = "/sheet.svg" + query + "&number=" + number;
            show($("picture"), true);
        }
    } catch (e) {
        say($("line"), "The command has ended; this is the last that it has shown.");
    }
    setTimeout(look, 1000);
}
look();
